import { type Readable, Writable } from 'node:stream'
import { createInterface } from 'node:readline/promises'
import { text } from 'node:stream/consumers'
import { exitCodes } from './errors.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** An output stream. */
interface Writer {
  readonly write: (text: string) => unknown
  readonly isTTY?: boolean
  readonly columns?: number
}

/** The parts of the process that a command uses. */
export interface Io {
  readonly env: Environment
  /** The folder that paths are relative to. */
  readonly cwd: string
  readonly stdin: Readable & { readonly isTTY?: boolean }
  readonly stdout: Writer
  readonly stderr: Writer
  /** Aborted when writing to an output fails, for example because the process that reads it has ended. */
  readonly signal: AbortSignal
  /** Starts the gateway in this process. */
  readonly serve: (env: Environment) => Promise<void>
}

const outputs = [process.stdout, process.stderr]
const brokenOutput = new AbortController()

/**
 * Aborts the run when writing to an output fails. A closed pipe is not an error: a reader such as head(1) may end
 * early.
 */
function onBrokenOutput (error: NodeJS.ErrnoException): void {
  brokenOutput.abort()
  if (error.code === 'EPIPE') return
  process.stderr.write(`tool-hub: The output cannot be written (${error.code ?? error.message}).\n`)
  process.exit(exitCodes.failed)
}

/** Handles errors of stdout and stderr, which would otherwise end the process with a stack trace. */
export function handleOutputErrors (): void {
  for (const stream of outputs) stream.on('error', onBrokenOutput)
}

/** Creates the `Io` of the current process. */
export const createProcessIo = (): Io => ({
  env: process.env,
  cwd: process.cwd(),
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  signal: brokenOutput.signal,
  serve: async (env) => {
    for (const [name, value] of Object.entries(env)) if (value !== undefined) process.env[name] = value
    // The gateway handles errors of its outputs itself.
    for (const stream of outputs) stream.off('error', onBrokenOutput)
    await import('./server.ts')
  }
})

/** Whether stdin and stderr are a terminal, so that `askUser` works. */
export const canAskUser = ({ stdin, stderr }: Io): boolean => stdin.isTTY === true && stderr.isTTY === true

/** Reads stdin to its end, as text. */
export const readStdin = async ({ stdin }: Io): Promise<string> => await text(stdin)

/** Asks the user at the terminal. @param isSecret hides the input */
export async function askUser ({ stdin, stderr }: Io, question: string, isSecret: boolean): Promise<string> {
  let isMuted = false
  const output =
    new Writable({ write: (chunk, _encoding, done) => { if (!isMuted) stderr.write(String(chunk)); done() } })
  const readline = createInterface({ input: stdin, output, terminal: true })
  try {
    const answer = readline.question(`${question}: `)
    isMuted = isSecret
    const value = await answer
    if (isSecret) stderr.write('\n')
    return value
  } finally {
    readline.close()
  }
}
