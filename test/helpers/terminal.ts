import { spawn, spawnSync } from 'node:child_process'
import type { Cleanup } from './hub.ts'
import { shellQuote } from '../../plugins/base/config/first-start.ts'

/** `script` of util-linux, which every Linux has; that of other systems takes other options. */
const { status, stdout } = spawnSync('script', ['--version'], { encoding: 'utf8' })
export const skipWithoutTerminal = status === 0 && stdout.includes('util-linux') ? false : 'needs script(1) of util-linux'

export interface Terminal {
  /** What was shown so far, with line breaks as elsewhere. */
  readonly output: () => string
  /** Closes the terminal, as closing its window does. */
  readonly hangUp: () => void
  /** The exit code of the command. Its signals are 128 and more. */
  readonly ended: Promise<number | null>
}

/** Runs a command line of a shell on a terminal of its own, without anybody at its keyboard. Hung up after the test. */
export function onTerminal (t: Cleanup, line: string, { cwd, env }: { cwd: string, env: Record<string, string> }): Terminal {
  const child = spawn('script', ['-qefc', `exec sh -c ${shellQuote(line)}`, '/dev/null'], {
    cwd, env: { PATH: process.env.PATH ?? '', SHELL: '/bin/sh', TERM: 'dumb', ...env }, stdio: ['pipe', 'pipe', 'pipe']
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => { output += String(chunk) })
  const ended = new Promise<number | null>((resolve) => { child.once('close', resolve) })
  const hangUp = (): void => { child.kill('SIGKILL') }
  t.after(async () => {
    hangUp()
    await ended
  })
  return { output: () => output.replaceAll('\r\n', '\n'), hangUp, ended }
}
