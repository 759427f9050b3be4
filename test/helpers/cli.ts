import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { runCommandLine } from '../../cli/program.ts'

type Environment = Readonly<Record<string, string | undefined>>
export interface Ended { code: number, out: string, err: string }
export interface CliOptions {
  cwd?: string
  /** What comes on stdin. */
  input?: string
  isTerminal?: boolean
  signal?: AbortSignal
  /** Called with each piece of stdout. */
  onOut?: (text: string) => void
  serve?: (env: Environment) => Promise<void>
}

/** The command line within this process, as `tool-hub` runs it in one of its own. */
export const cli = (env: Environment, options: CliOptions = {}) => async (...args: string[]): Promise<Ended> => {
  const { cwd = tmpdir(), input = '', isTerminal = false, signal = new AbortController().signal, onOut, serve } = options
  let [out, err] = ['', '']
  const code = await runCommandLine(args, {
    env: { PATH: process.env.PATH ?? '', ...env },
    cwd,
    stdin: Object.assign(Readable.from(input === '' ? [] : [input]), { isTTY: isTerminal }),
    stdout: { write: (text) => { out += text; onOut?.(text) }, isTTY: isTerminal },
    stderr: { write: (text) => { err += text }, isTTY: isTerminal },
    signal,
    serve: serve ?? (async () => { throw new Error('no gateway is started here') })
  })
  return { code, out, err }
}

/** The variables of a gateway in this folder. */
export const envOf = (folder: string, env: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  ({ HOME: folder, SETTINGS_PATH: join(folder, 'mcp_settings.json'), ...env })

/** A command of the kind that needs no gateway, for the gateway of a folder. @returns its exit code, and what it printed */
export async function maintain (
  command: 'backup' | 'restore', folder: string, args: string[], env: Readonly<Record<string, string>> = {}
): Promise<{ code: number, told: string }> {
  const { code, out, err } = await cli(envOf(folder, env))(command, ...args)
  return { code, told: out + err }
}
