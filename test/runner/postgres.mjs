// The PostgreSQL that all batches of a run share: a process of ours (test/fakes/postgres.ts) that ends with the run.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { bundleOf } from '../build.mjs'

/** @returns the variables that tell tests where it is, and a function that stops it; where TEST_DB_URL names one, that */
export async function startPostgres (cwd) {
  if (process.env.TEST_DB_URL !== undefined) return undefined
  const child = spawn(process.execPath, ['--import=./test/helpers/prepare.mjs', bundleOf('test/fakes/postgres.ts')], { cwd, stdio: ['pipe', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  const line = await Promise.race([once(createInterface(child.stdout), 'line').then(([line]) => line), exited.then(() => undefined)])
  if (line === undefined) throw new Error('PostgreSQL does not start')
  // It ends with its standard input: also when this process is killed.
  return { env: JSON.parse(line), stop: async () => { child.stdin.end(); await exited } }
}
