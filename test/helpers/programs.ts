import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { path } from './hub.ts'

/** How a program ended, and what it printed: by stream, and as it came. */
export interface Run { code: number | null, out: string, err: string, said: string }

/** Runs a program to its end, in the project's folder unless another one is given. @param env beside PATH */
export async function runToEnd (
  command: string,
  args: readonly string[],
  { env = {}, cwd = path(''), input = '' }: { env?: Record<string, string>, cwd?: string, input?: string } = {}
): Promise<Run> {
  const child = spawn(command, args, { cwd, env: { PATH: process.env.PATH ?? '', ...env }, stdio: 'pipe' })
  let [out, err, said] = ['', '', '']
  child.stdout.on('data', (chunk) => { out += String(chunk); said += String(chunk) })
  child.stderr.on('data', (chunk) => { err += String(chunk); said += String(chunk) })
  // Who does not read its input is gone before all of it is written.
  child.stdin.on('error', () => {}).end(input)
  const [code] = await once(child, 'close') as [number | null]
  return { code, out, err, said }
}
