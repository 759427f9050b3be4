import { errorCode, messageOf } from '../db/errors.ts'

/** The exit codes of the command line (docs/cli.md). */
export const exits = { ok: 0, failed: 1, usage: 2, unreachable: 3, forbidden: 4, toolError: 5 } as const

/** The failure of a command: a message for the user, and an exit code. */
export class CommandError extends Error {
  readonly exit: number
  /** The error code of the API, if the response has one. */
  readonly code: string | undefined
  /** The results of a batch in which every item failed. */
  results: unknown

  constructor (message: string, exit: number = exits.failed, code?: string) {
    super(message)
    this.exit = exit
    this.code = code
  }
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'its folder does not exist',
  ENOTDIR: 'what should be its folder is a file',
  EACCES: 'this user may not write there',
  EPERM: 'this user may not write there',
  EROFS: 'the file system there is read-only',
  ENOSPC: 'there is no space left',
  EDQUOT: 'there is no space left for this user',
  EISDIR: 'it is a folder',
  ENOTEMPTY: 'it is a folder',
  ENAMETOOLONG: 'its name is too long'
}
/** Codes of failed writes, whatever path the error names: the error of a copy names the source. */
const ofWriting = new Set(['ENOSPC', 'EDQUOT', 'EROFS'])

interface Place {
  /** The file or folder that the command writes, as the user named it. */
  readonly target: string
  /** The folder that the command writes to. Paths outside it are read. */
  readonly within: string
  /** Tells the user what to change. */
  readonly advice: string
}

/** Describes an error of the file system without internal paths. Returns any other error unchanged. */
export function explain (error: unknown, { target, within, advice }: Place): unknown {
  const code = errorCode(error)
  if (!(error instanceof Error) || code === undefined || !('syscall' in error)) return error
  const path = 'path' in error && typeof error.path === 'string' ? error.path : within
  if (!path.startsWith(within) && !ofWriting.has(code)) {
    return new Error(`${path} cannot be read (${code}). Let this user read it.`)
  }
  return new Error(`${target} cannot be written: ${reasons[code] ?? 'the system refuses it'} (${code}). ${advice}`)
}

/** Prints an error, as JSON or after a prefix. @returns its exit code */
export function printError (
  error: unknown,
  { stderr }: { readonly stderr: { readonly write: (text: string) => unknown } },
  { isJson, prefix }: { isJson: boolean, prefix: string }
): number {
  const message = messageOf(error)
  const { exit = exits.failed, code } = error instanceof CommandError ? error : {}
  stderr.write(`${isJson ? JSON.stringify({ success: false, message, code }) : `${prefix}${message}`}\n`)
  return exit
}
