import { isatty } from 'node:tty'

/** Where the log goes: a line of JSON each, or prettier on a terminal. */
export interface LogOutput { readonly write: (line: string) => void }

/**
 * The standard output, for a log. What fails there (a full disk, a terminal that is gone, a reader that has ended) is no reason to stop:
 * such a line is lost, and the next one is tried again. The errors that the stream emits are to be listened to.
 */
export async function logOutput (stdout = process.stdout): Promise<LogOutput> {
  const write = (text: string): void => {
    try {
      stdout.write(text)
    } catch {}
  }
  if (!stdout.isTTY) return { write }
  const { prettyFactory } = await import('pino-pretty')
  const pretty = prettyFactory({ translateTime: 'HH:MM:ss', ignore: 'pid,hostname,server' })
  return { write: (line) => { write(pretty(line)) } }
}

/**
 * Lets go of terminals that are gone, before the process ends: Node 20 sets the mode of its terminal again then, and where that fails it
 * loops for ever, deaf to SIGTERM.
 * @returns to be called at the end of the process
 */
export function lostTerminals (close: (fd: number) => void): () => void {
  const terminals = [0, 1, 2].filter((fd) => isatty(fd))
  return () => {
    for (const fd of terminals) if (!isatty(fd)) close(fd)
  }
}
