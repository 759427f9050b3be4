import { errorCode, messageOf } from '../db/errors.ts'
import { toIndentedPrintableLines, toJsonText } from './printable.ts'

/** The exit codes of the command line (docs/cli.md). */
export const exitCodes = { ok: 0, failed: 1, usage: 2, unreachable: 3, forbidden: 4, toolError: 5 } as const

/** The failure of a command, with a message for the user and an exit code. */
export class CommandError extends Error {
  readonly exitCode: number
  /** The error code of the API, if the response has one. */
  readonly code: string | undefined
  /** The `results` in the response to a batch of which all items failed; otherwise undefined. */
  results: unknown

  constructor (message: string, exit: number = exitCodes.failed, code?: string) {
    super(message)
    this.exitCode = exit
    this.code = code
  }
}

/** The reasons why a file cannot be written, by the error code of the system. */
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
/** Error codes that always mean a failed write, even if the error names the file that was read, as when copying. */
const writeErrorCodes = new Set(['ENOSPC', 'EDQUOT', 'EROFS'])

/** The target of a command that writes files, for error messages. */
interface WritePlace {
  /** The file or folder that the command writes, as given by the user. */
  readonly target: string
  /** The folder that the command writes to. An error about a path outside this folder is treated as a read error. */
  readonly folder: string
  /** Advice for the user on what to change. */
  readonly advice: string
}

/** Converts a file system error to one with a message for the user. Other errors are returned unchanged. */
export function explainFileError (error: unknown, { target, folder: within, advice }: WritePlace): unknown {
  const code = errorCode(error)
  if (!(error instanceof Error) || code === undefined || !('syscall' in error)) return error
  const path = 'path' in error && typeof error.path === 'string' ? error.path : within
  if (!path.startsWith(within) && !writeErrorCodes.has(code)) {
    return new Error(`${path} cannot be read (${code}). Let this user read it.`)
  }
  return new Error(`${target} cannot be written: ${reasons[code] ?? 'the system refuses it'} (${code}). ${advice}`)
}

/** Prints an error to stderr, as JSON or as text with a prefix. @returns the exit code of the process */
export function printError (
  error: unknown,
  { stderr }: { readonly stderr: { readonly write: (text: string) => unknown } },
  { isJson, prefix }: { isJson: boolean, prefix: string }
): number {
  const message = messageOf(error)
  const { exitCode: exit = exitCodes.failed, code } = error instanceof CommandError ? error : {}
  const text = isJson ? toJsonText({ success: false, message, code }) : prefix + toIndentedPrintableLines(message)
  stderr.write(`${text}\n`)
  return exit
}
