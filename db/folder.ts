import { mkdirSync, statSync } from 'node:fs'
import { lchown, open, readdir } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { errorCode } from './errors.ts'

/** The reasons why a folder cannot be used, as clauses, by the system's error code. */
const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'no folder can be created there',
  EPERM: 'no folder can be created there',
  EACCES: 'this user may not write there',
  EROFS: 'the file system is read-only',
  ENOSPC: 'no space is left on the disk',
  EDQUOT: 'the disk quota is used up',
  EEXIST: 'a file has that name',
  ENOTDIR: 'a part of its path is a file',
  ENAMETOOLONG: 'its name is too long',
  ELOOP: 'its path contains a loop of symbolic links'
}

/**
 * The error for a folder that cannot be created, or in which no file can be created. The message states the reason and
 * what to change; `code` is the system's error code.
 */
export class FolderError extends Error {
  override readonly name = 'FolderError'
  readonly code: string

  constructor (path: string, variable: string, error: unknown) {
    const code = errorCode(error) ?? 'unknown error'
    super(
      `The folder ${path} cannot be used, since ${reasons[code] ?? 'the system refuses it'} (${code}). ` +
      `Set ${variable} to a folder that this user can write to.`,
      { cause: error }
    )
    this.code = code
  }
}

/**
 * Creates a folder and its missing parents, accessible to their owner only. Unlike Node's `mkdir` with `recursive`, it
 * fails if an existing folder accepts no new entries, as in /proc, where Node would retry forever.
 * @param variable the environment variable that the path comes from, for the message
 * @returns the outermost folder that was created; undefined if all folders existed
 * @throws FolderError
 */
export function makeFolder (path: string, variable: string): string | undefined {
  let first: string | undefined
  for (const folder of missingFolders(path)) {
    try {
      mkdirSync(folder, { mode: 0o700 })
      first ??= folder
    } catch (error) {
      // Another process may have created the folder meanwhile.
      if (!isFolder(folder)) throw new FolderError(folder, variable, error)
    }
  }
  return first
}

/** Returns the missing folders of a path, which are the folder itself and its missing parents, outermost first. */
function missingFolders (path: string): string[] {
  const folders: string[] = []
  for (let at = resolve(path); !isFolder(at); at = dirname(at)) folders.unshift(at)
  return folders
}

/** Whether a path is an existing folder; always true for the root. */
function isFolder (path: string): boolean {
  try {
    return path === dirname(path) || statSync(path).isDirectory()
  } catch {
    return false
  }
}

/**
 * Makes the content of a file, or the list of files in a folder, durable by fsync. The errors with which some file
 * systems refuse an fsync of folders are ignored.
 */
export async function fsyncPath (path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } catch (error) {
    if (!['EINVAL', 'ENOTSUP', 'EPERM', 'EISDIR'].includes(errorCode(error) ?? '')) throw error
  } finally {
    await handle.close()
  }
}

/** Makes a user the owner of a file, or of a folder with its content, if this process may do that. */
export async function chownAll (
  path: string, { uid, gid }: { readonly uid: number, readonly gid: number }
): Promise<void> {
  for (const name of ['', ...await readdir(path, { recursive: true }).catch(() => [])]) {
    await lchown(join(path, name), uid, gid).catch(() => {})
  }
}
