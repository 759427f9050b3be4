import { errorCode } from '../db/error-code.ts'

/** The exit codes of the command line (docs/cli.md). */
export const exits = { ok: 0, failed: 1, usage: 2, unreachable: 3, forbidden: 4, toolError: 5 } as const

/** Why a command failed, as a sentence, with the exit code that says so. */
export class CommandError extends Error {
  readonly exit: number
  /** The code of the API's error, if it has one. */
  readonly code: string | undefined
  /** The results of the API's answer, where it has some all the same. */
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
/** Failures of writing, whichever path the error names: a copy names its source. */
const ofWriting = new Set(['ENOSPC', 'EDQUOT', 'EROFS'])

interface Place {
  /** The file or folder that the command writes, as the user named it. */
  readonly target: string
  /** The folder that is written to; beyond it, paths are those of what is read. */
  readonly within: string
  /** A sentence that tells the user what to change. */
  readonly advice: string
}

/** An error of the file system as a sentence without internal paths; any other error as it is. */
export function explain (error: unknown, { target, within, advice }: Place): unknown {
  const code = errorCode(error)
  if (!(error instanceof Error) || code === undefined || !('syscall' in error)) return error
  const path = 'path' in error && typeof error.path === 'string' ? error.path : within
  if (!path.startsWith(within) && !ofWriting.has(code)) return new Error(`${path} cannot be read (${code}). Let this user read it.`)
  return new Error(`${target} cannot be written: ${reasons[code] ?? 'the system refuses it'} (${code}). ${advice}`)
}
