import { ftruncateSync, renameSync } from 'node:fs'
import { open, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { errorCode } from '../errors.ts'
import { fsyncPath } from '../folder.ts'
import { StorageError } from '../store.ts'

/** Clauses that say why a write failed, by the system's error code. */
const reasons: Readonly<Record<string, string>> = {
  ENOSPC: 'no space is left on the disk',
  EDQUOT: 'the disk quota is used up',
  EROFS: 'the file system is read-only',
  EACCES: 'this user may not write in its folder',
  EPERM: 'this user may not write it',
  EIO: 'the disk reports an error',
  EMFILE: 'this process has too many files open',
  ENFILE: 'the system has too many files open',
  ENOENT: 'its folder does not exist'
}

/** The error for a file that was edited since it was last read or written. Nothing was written. */
export class FileEditedError extends Error {
  override readonly name = 'FileEditedError'
}

/** Converts the error of a failed write to a StorageError, whose message may reach a client and contains no path. */
export function toWriteError (error: unknown): StorageError {
  if (error instanceof StorageError) return error
  const code = errorCode(error)
  const reason = code === undefined ? 'unknown error' : `${reasons[code] ?? 'the system refuses it'}, ${code}`
  return new StorageError(
    `The settings file cannot be written (${reason}). Nothing was changed.`,
    code === 'ENOSPC' || code === 'EDQUOT',
    code === 'EIO'
  )
}

/**
 * Replaces a file by a new one with a rename: a reader sees either the old bytes or the new ones. When the promise
 * resolves, the new bytes are on stable storage. The mode becomes 0600; the owner is kept, if this process may set it.
 * @param lastCheck called right before the rename; if it throws, the old bytes stay
 * @throws the error of `lastCheck`, or the system's error; the file is unchanged, unless the fsync after the rename
 *   fails
 */
export async function replaceFileAtomically (
  path: string, bytes: Uint8Array, lastCheck: () => void = () => {}
): Promise<void> {
  const temp = `${path}.tmp`
  try {
    await rm(temp, { force: true })
    const owner = await stat(path).catch(() => undefined)
    const handle = await open(temp, 'wx', 0o600)
    try {
      if (owner && owner.uid !== process.geteuid?.()) await handle.chown(owner.uid, owner.gid).catch(() => {})
      await handle.writeFile(bytes)
      await handle.sync()
    } finally {
      await handle.close()
    }
    // The check and the rename are synchronous, so that there is almost no time between them for an edit, which would
    // be lost. The disk has just responded, so they do not block for long.
    lastCheck()
    renameSync(temp, path)
  } catch (error) {
    await rm(temp, { force: true }).catch(() => {})
    throw error
  }
  await fsyncPath(dirname(path))
}

/**
 * Whether an error of `replaceFileAtomically` means that a rename cannot replace the file, which may be a mount point.
 */
export const isRenameRefused = (error: unknown): boolean =>
  error instanceof Error && 'syscall' in error && error.syscall === 'rename' &&
    ['EBUSY', 'EXDEV', 'EPERM'].includes(errorCode(error) ?? '')

/**
 * Overwrites a file in place. A crash can leave it incomplete, which `restoreInterruptedWrite` repairs.
 * @param lastCheck called right before the write; if it throws, the old bytes stay
 */
export async function overwriteFile (path: string, bytes: Uint8Array, lastCheck: () => void = () => {}): Promise<void> {
  const handle = await open(path, 'r+')
  try {
    lastCheck()
    ftruncateSync(handle.fd)
    await handle.chmod(0o600).catch(() => {})
    await handle.writeFile(bytes)
    await handle.sync()
  } finally {
    await handle.close()
  }
}
