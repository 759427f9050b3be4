import { readFileSync, statSync } from 'node:fs'
import { chmod, open, readFile, readlink, realpath, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import type { BigIntStats } from 'node:fs'
import { backupPath, restoreInterruptedWrite, removeLeftovers, backUpAndOverwrite } from './recovery.ts'
import { errorCode } from '../errors.ts'
import { fsyncPath } from '../folder.ts'
import { isRenameRefused, FileEditedError, replaceFileAtomically, toWriteError } from './write.ts'

/**
 * The max time between two changes of a file that get the same timestamp, in ms. Some file systems store times with a
 * resolution of 2 s.
 */
const timestampResolution = 2_500

/**
 * Metadata that shows whether a file was changed, without reading it. `text`: its inode, size and times; `isSettled`:
 * whether the last change is so old that a later one would have another timestamp.
 */
interface FileStamp { readonly text: string, readonly isSettled: boolean }

const stampOf = ({ dev, ino, size, mtimeNs, ctimeNs, ctimeMs }: BigIntStats): FileStamp => ({
  text: [dev, ino, size, mtimeNs, ctimeNs].join(':'),
  isSettled: Date.now() - Number(ctimeMs) > timestampResolution
})

/**
 * The settings file on disk. To find edits, it is compared with the bytes that were last read from it or written to it.
 * The content decides whether the file was changed; timestamps only avoid reads.
 */
export class SettingsFile {
  readonly #path: string
  /** The bytes and the stamp of the file as last accepted (`remember`) or written; undefined if there are none yet. */
  #bytes: Buffer | undefined
  #stamp: FileStamp | undefined
  #isBackedUp = false

  constructor (path: string) {
    this.#path = path
  }

  /** Returns the path with symbolic links resolved, even if the file does not exist yet. */
  async realPath (): Promise<string> {
    return await resolvePath(this.#path)
  }

  /**
   * Reads the file.
   * @returns undefined if it does not exist
   * @throws the system's error; an Error with the code `ENOTFILE` for a device, a named pipe or a socket
   */
  async read (): Promise<{ bytes: Buffer, stamp: FileStamp } | undefined> {
    const before = await stat(this.#path).catch(undefinedIfMissing)
    if (before === undefined) return undefined
    // Checked before opening, since opening a named pipe would wait for a writer.
    if (!before.isFile()) {
      throw Object.assign(new Error('not a file'), { code: before.isDirectory() ? 'EISDIR' : 'ENOTFILE' })
    }
    const handle = await open(this.#path, 'r')
    try {
      const stamp = stampOf(await handle.stat({ bigint: true }))
      return { bytes: await handle.readFile(), stamp }
    } finally {
      await handle.close()
    }
  }

  /**
   * Compares the file with the bytes that were last accepted or written.
   * @returns `same`, or the new bytes, which the caller passes to `remember` once it has accepted them; `gone` if the
   *   file no longer exists; `none` if there is no file, and none was accepted or written before
   */
  async findEdit (): Promise<'same' | 'gone' | 'none' | { bytes: Buffer, stamp: FileStamp }> {
    const now = await stat(this.#path, { bigint: true }).catch(undefinedIfMissing)
    if (now === undefined) return this.#checkMissing()
    if (this.#bytes !== undefined && this.#stamp?.isSettled === true && stampOf(now).text === this.#stamp.text) {
      return 'same'
    }
    const found = await this.read()
    if (found === undefined) return this.#checkMissing()
    if (this.#bytes?.equals(found.bytes) !== true) return found
    this.#stamp = found.stamp
    return 'same'
  }

  #checkMissing (): 'none' | 'gone' {
    this.#stamp = undefined
    return this.#bytes === undefined ? 'none' : 'gone'
  }

  /** Sets the bytes with which the file is compared from now on. */
  remember (found: { bytes: Buffer, stamp: FileStamp } | undefined): void {
    this.#bytes = found?.bytes
    this.#stamp = found?.stamp
  }

  /** Restores the file if an interrupted write in place left it incomplete. @returns whether it was restored */
  async recover (): Promise<boolean> {
    return await restoreInterruptedWrite(await this.realPath()) !== undefined
  }

  /** Reads the `.bak` of the file, and the time of its last change; undefined if it is missing or cannot be read. */
  async readBackup (): Promise<{ path: string, bytes: Buffer, time: Date } | undefined> {
    const path = backupPath(await this.realPath())
    try {
      const { mtime: time } = await stat(path)
      return { path, bytes: await readFile(path), time }
    } catch {
      return undefined
    }
  }

  /**
   * Sets the mode to 0600, and removes leftovers of interrupted writes. The caller must hold the lock, and the file
   * must be valid.
   */
  async cleanUp (): Promise<void> {
    await this.restrictMode()
    await removeLeftovers(await this.realPath())
  }

  /**
   * Tries to set the mode of the file to 0600.
   * @returns true if this took away the right of other users to write the file
   */
  async restrictMode (): Promise<boolean> {
    const path = await this.realPath()
    return await stat(path).then(async ({ mode }) => {
      if ((mode & 0o077) === 0) return false
      await chmod(path, 0o600)
      return (mode & 0o022) !== 0
    }).catch(() => false)
  }

  /**
   * Overwrites the backup with the current bytes of the file. Called after a write that removed a plain-text secret,
   * which must not remain in the backup.
   * @throws the system's error
   */
  async overwriteBackup (): Promise<void> {
    if (this.#bytes !== undefined) await replaceFileAtomically(backupPath(await this.realPath()), this.#bytes)
  }

  /**
   * Writes the file durably. The first write saves the former bytes as the backup.
   * @throws FileEditedError, without a change, when the file was edited since it was last read or written; StorageError
   *   when the write failed, after the former bytes were restored if possible
   */
  async write (bytes: Buffer): Promise<void> {
    const former = this.#bytes
    const path = await this.realPath()
    try {
      if (former !== undefined && !this.#isBackedUp) await replaceFileAtomically(backupPath(path), former)
      this.#isBackedUp = true
      const lastCheck = (): void => { this.#assertUnchanged() }
      await replaceFileAtomically(path, bytes, lastCheck).catch(async (error: unknown) => {
        if (former === undefined || !isRenameRefused(error)) throw error
        await backUpAndOverwrite(path, bytes, former, lastCheck)
      })
    } catch (error) {
      if (error instanceof FileEditedError) throw error
      await this.#undoWrite(path, bytes, former)
      throw toWriteError(error)
    }
    this.#bytes = bytes
    this.#stamp = await stat(path, { bigint: true }).then(stampOf, () => undefined)
  }

  /** Tests whether a file of the same size can be written in the same folder now. @throws StorageError if not */
  async testWrite (): Promise<void> {
    const path = `${await this.realPath()}.probe`
    try {
      await replaceFileAtomically(path, Buffer.alloc(this.#bytes?.length ?? 1))
    } catch (error) {
      throw toWriteError(error)
    } finally {
      await rm(path, { force: true }).catch(() => {})
    }
  }

  /** Checks that the file was not edited since it was last read or written. @throws FileEditedError */
  #assertUnchanged (): void {
    const now = statSync(this.#path, { bigint: true, throwIfNoEntry: false })
    if ((now && stampOf(now).text) === this.#stamp?.text) return
    const isKnown =
      now !== undefined && this.#bytes !== undefined && now.isFile() && readFileSync(this.#path).equals(this.#bytes)
    if (!isKnown) throw new FileEditedError()
  }

  /** Restores the former bytes if the write failed after the rename, at the fsync of the folder. */
  async #undoWrite (path: string, bytes: Buffer, former: Buffer | undefined): Promise<void> {
    try {
      const found = await this.read()
      if (found?.bytes.equals(bytes) !== true || former?.equals(bytes) === true) return
      if (former === undefined) await rm(path)
      else await replaceFileAtomically(path, former)
      await fsyncPath(dirname(path))
    } catch {
      // The next comparison with the file finds whatever is in it, and treats it as an edit.
    }
  }
}

function undefinedIfMissing (error: unknown): undefined {
  if (errorCode(error) !== 'ENOENT') throw error
}

/** Resolves symbolic links, even if the target does not exist yet. @param links max links to follow */
async function resolvePath (path: string, links = 40): Promise<string> {
  try {
    return await realpath(path)
  } catch {
    const target = links > 0 ? await readlink(path).catch(() => undefined) : undefined
    if (target !== undefined) return await resolvePath(resolve(dirname(path), target), links - 1)
    return join(await realpath(dirname(path)).catch(() => dirname(path)), basename(path))
  }
}
