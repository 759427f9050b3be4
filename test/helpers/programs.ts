import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { path, type Cleanup } from './hub.ts'

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

/** A program that is running, and what it has printed. */
export interface Running { child: ChildProcess, said: () => string, closed: Promise<number | null> }

/** Starts a program that runs until the test ends, which ends its group as Ctrl-C does. @param env beside PATH */
export function startProgram (
  t: Cleanup, command: string, args: readonly string[], { env = {}, cwd = path('') }: { env?: Record<string, string>, cwd?: string } = {}
): Running {
  const child = spawn(command, args, { cwd, env: { PATH: process.env.PATH ?? '', ...env }, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => { said += String(chunk) })
  const closed = new Promise<number | null>((resolve) => { child.once('close', resolve) })
  t.after(async () => {
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) process.kill(-child.pid, 'SIGINT')
    await closed
  })
  return { child, said: () => said, closed }
}
