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

/** The parts of the process that a command uses: environment, inputs and outputs. Tests replace them. */
export interface Io {
  readonly env: Environment
  /** The folder that relative paths start from. */
  readonly cwd: string
  readonly stdin: Readable & { readonly isTTY?: boolean }
  readonly stdout: Writer
  readonly stderr: Writer
  /** Aborted when writing to stdout or stderr fails, for example because the reader of the output has ended. */
  readonly signal: AbortSignal
  /** Starts the gateway in this process. @param env environment variables to set before the start */
  readonly serve: (env: Environment) => Promise<void>
}

const outputs = [process.stdout, process.stderr]
const brokenOutput = new AbortController()

/**
 * Aborts `Io.signal` when writing to an output fails, and exits with an error. For a closed pipe, it does not exit,
 * since a reader such as head(1) may end early.
 */
function onBrokenOutput (error: NodeJS.ErrnoException): void {
  brokenOutput.abort()
  if (error.code === 'EPIPE') return
  process.stderr.write(`tool-hub: The output cannot be written (${error.code ?? error.message}).\n`)
  process.exit(exitCodes.failed)
}

/** Handles write errors of stdout and stderr, which would otherwise end the process with a stack trace. */
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
    // The gateway handles write errors itself.
    for (const stream of outputs) stream.off('error', onBrokenOutput)
    await import('./server.ts')
  }
})

/** Whether `askUser` can be used: stdin and stderr must be terminals. */
export const canAskUser = ({ stdin, stderr }: Io): boolean => stdin.isTTY === true && stderr.isTTY === true

/** Reads stdin to its end. @returns the text */
export const readStdin = async ({ stdin }: Io): Promise<string> => await text(stdin)

/** Asks the user a question at the terminal. @param isSecret whether the input is hidden @returns the answer */
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
