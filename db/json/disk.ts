import { readFileSync, statSync } from 'node:fs'
import { chmod, open, readlink, realpath, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import type { BigIntStats } from 'node:fs'
import { backupOf, recover, tidy, writeInPlace } from './recovery.ts'
import { cannotReplace, codeOf, Edited, replace, storageError, syncFolder } from './write.ts'

/** How old a change must be before the times of a file tell it from another one, ms: file systems count in up to 2 s. */
const coarsest = 2_500

/** What tells one state of a file from another without reading it; `settled`: for sure. */
interface Stamp { readonly text: string, readonly settled: boolean }

const stampOf = ({ dev, ino, size, mtimeNs, ctimeNs, ctimeMs }: BigIntStats): Stamp =>
  ({ text: [dev, ino, size, mtimeNs, ctimeNs].join(':'), settled: Date.now() - Number(ctimeMs) > coarsest })

/** The bytes of the settings file: as we know them, and as they are. The content decides; times only spare reading it. */
export class Disk {
  readonly #path: string
  #bytes: Buffer | undefined
  #stamp: Stamp | undefined
  #backedUp = false

  constructor (path: string) {
    this.#path = path
  }

  /** Where the file really is, through symbolic links, even when it is not there yet. */
  async place (): Promise<string> {
    return await placeOf(this.#path)
  }

  /** The bytes now; undefined: there is no file. @throws the system's error, or `ENOTFILE` */
  async read (): Promise<{ bytes: Buffer, stamp: Stamp } | undefined> {
    const before = await stat(this.#path).catch((error: unknown) => { if (codeOf(error) === 'ENOENT') return undefined; throw error })
    if (before === undefined) return undefined
    // Opening a named pipe would wait for a writer.
    if (!before.isFile()) throw Object.assign(new Error('not a file'), { code: before.isDirectory() ? 'EISDIR' : 'ENOTFILE' })
    const handle = await open(this.#path, 'r')
    try {
      const stamp = stampOf(await handle.stat({ bigint: true }))
      return { bytes: await handle.readFile(), stamp }
    } finally {
      await handle.close()
    }
  }

  /** What differs from the bytes we know: `same`, `gone`, or the new bytes. They are not known before they are taken. */
  async look (): Promise<'same' | 'gone' | { bytes: Buffer, stamp: Stamp }> {
    const now = await stat(this.#path, { bigint: true }).catch((error: unknown) => {
      if (codeOf(error) === 'ENOENT') return undefined
      throw error
    })
    if (now === undefined) return this.#missing()
    if (this.#bytes !== undefined && this.#stamp?.settled === true && stampOf(now).text === this.#stamp.text) return 'same'
    const found = await this.read()
    if (found === undefined) return this.#missing()
    if (this.#bytes === undefined || !found.bytes.equals(this.#bytes)) return found
    this.#stamp = found.stamp
    return 'same'
  }

  #missing (): 'same' | 'gone' {
    this.#stamp = undefined
    return this.#bytes === undefined ? 'same' : 'gone'
  }

  /** These are the bytes we know from now on. */
  take (found: { bytes: Buffer, stamp: Stamp } | undefined): void {
    this.#bytes = found?.bytes
    this.#stamp = found?.stamp
  }

  /** Puts back what an interrupted write in place destroyed. @returns whether it was that */
  async recover (): Promise<boolean> {
    return await recover(await this.place()) !== undefined
  }

  /** For a file that is ours, once it is known to be good: others may not read it, and what was left beside it goes. */
  async tidy (): Promise<void> {
    const path = await this.place()
    if (((await stat(path)).mode & 0o077) !== 0) await chmod(path, 0o600).catch(() => {})
    await tidy(path)
  }

  /** Makes the backup that of what is there now, where the former one has what nobody shall find any more. */
  async renewBackup (): Promise<void> {
    if (this.#bytes !== undefined) await replace(backupOf(await this.place()), this.#bytes).catch(() => {})
  }

  /** Makes the file hold these bytes, durably. @throws StorageError, or `Edited` where it is not as `look` found it; it then holds what it held before */
  async write (bytes: Buffer): Promise<void> {
    const former = this.#bytes
    const path = await this.place()
    try {
      if (former !== undefined && !this.#backedUp) await replace(backupOf(path), former)
      this.#backedUp = true
      const last = (): void => { this.#mustStand() }
      await replace(path, bytes, last).catch(async (error: unknown) => {
        if (former === undefined || !cannotReplace(error)) throw error
        await writeInPlace(path, bytes, former, last)
      })
    } catch (error) {
      if (error instanceof Edited) throw error
      await this.#undo(path, bytes, former)
      throw storageError(error)
    }
    this.#bytes = bytes
    this.#stamp = await stat(path, { bigint: true }).then(stampOf, () => undefined)
  }

  /** Tries whether as many bytes could be written now. @throws StorageError */
  async probe (): Promise<void> {
    const path = `${await this.place()}.probe`
    try {
      await replace(path, Buffer.alloc(this.#bytes?.length ?? 1))
    } catch (error) {
      throw storageError(error)
    } finally {
      await rm(path, { force: true }).catch(() => {})
    }
  }

  /** @throws Edited when the file holds something else than at the last look */
  #mustStand (): void {
    const now = statSync(this.#path, { bigint: true, throwIfNoEntry: false })
    if ((now && stampOf(now).text) === this.#stamp?.text) return
    if (now === undefined || this.#bytes === undefined || !now.isFile() || !readFileSync(this.#path).equals(this.#bytes)) throw new Edited()
  }

  /** After a failure behind the rename (the folder's fsync) the new bytes are in place: the old ones go back. */
  async #undo (path: string, bytes: Buffer, former: Buffer | undefined): Promise<void> {
    try {
      const found = await this.read()
      if (found?.bytes.equals(bytes) !== true || former?.equals(bytes) === true) return
      if (former === undefined) await rm(path)
      else await replace(path, former)
      await syncFolder(dirname(path))
    } catch {
      // What is there now is found at the next look, and taken up as an edit.
    }
  }
}

async function placeOf (path: string, links = 40): Promise<string> {
  try {
    return await realpath(path)
  } catch {
    const target = links > 0 ? await readlink(path).catch(() => undefined) : undefined
    if (target !== undefined) return await placeOf(resolve(dirname(path), target), links - 1)
    return join(await realpath(dirname(path)).catch(() => dirname(path)), basename(path))
  }
}
