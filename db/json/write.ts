import { ftruncateSync, renameSync } from 'node:fs'
import { open, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { StorageError } from '../store.ts'

/** The system's word for what failed: `ENOSPC`. */
export const codeOf = (error: unknown): string | undefined => error instanceof Error && 'code' in error ? String(error.code) : undefined

const words: Readonly<Record<string, string>> = {
  ENOSPC: 'no space is left on the disk',
  EDQUOT: 'the disk quota is used up',
  EROFS: 'the file system is read-only',
  EACCES: 'this user may not write in its folder',
  EPERM: 'this user may not write it',
  EIO: 'the disk reports an error',
  ENOENT: 'its folder is gone'
}

/** Somebody else made another file of it since we looked: nothing was written. */
export class Edited extends Error {
  override readonly name = 'Edited'
}

/** A failed write in words, without the path: the sentence may reach a client. */
export function storageError (error: unknown): StorageError {
  if (error instanceof StorageError) return error
  const code = codeOf(error)
  const why = code === undefined ? 'unknown error' : `${words[code] ?? 'the system refuses'}, ${code}`
  return new StorageError(
    `The settings file cannot be written (${why}). Nothing was changed.`,
    code === 'ENOSPC' || code === 'EDQUOT',
    code === 'EIO'
  )
}

/** Makes the names in a folder durable. Some file systems know no fsync of folders, and need none. */
export async function syncFolder (folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } catch (error) {
    if (!['EINVAL', 'ENOTSUP', 'EPERM', 'EISDIR'].includes(codeOf(error) ?? '')) throw error
  } finally {
    await handle.close()
  }
}

/**
 * Puts bytes in the place of a file: a reader sees the old ones or the new ones, whole; when it resolves they are on stable
 * storage. Mode 0600, whatever the mode was; the owner stays, where we may say so.
 * @param last called right before the old bytes go; what it throws keeps them
 * @throws the system's error; when it comes from before the rename, nothing has changed
 */
export async function replace (path: string, bytes: Uint8Array, last: () => void = () => {}): Promise<void> {
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
    // In one go with the last look: an edit that came in between would be lost. The disk has just answered, and does so now.
    last()
    renameSync(temp, path)
  } catch (error) {
    await rm(temp, { force: true }).catch(() => {})
    throw error
  }
  await syncFolder(dirname(path))
}

/** Whether `replace` failed because this very file cannot be replaced, as one that is a mount point. */
export const cannotReplace = (error: unknown): boolean =>
  error instanceof Error && 'syscall' in error && error.syscall === 'rename' && ['EBUSY', 'EXDEV', 'EPERM'].includes(codeOf(error) ?? '')

/** Writes over a file where it is. A crash leaves part of it: see `recover`. @param last as for `replace` */
export async function overwrite (path: string, bytes: Uint8Array, last: () => void = () => {}): Promise<void> {
  const handle = await open(path, 'r+')
  try {
    last()
    ftruncateSync(handle.fd)
    await handle.chmod(0o600).catch(() => {})
    await handle.writeFile(bytes)
    await handle.sync()
  } finally {
    await handle.close()
  }
}
