import { errorCode } from '../../db/error-code.ts'

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
