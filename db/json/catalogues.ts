import { createHash } from 'node:crypto'
import { open, readdir, readFile, rename, rm, writeFile, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import pLimit, { type LimitFunction } from 'p-limit'
import { errorCode } from '../errors.ts'
import { makeFolder } from '../folder.ts'
import type { CatalogueCache } from '../store.ts'

/** The system's error codes for a file or folder that does not exist. */
const missingFileCodes: ReadonlySet<string | undefined> = new Set(['ENOENT', 'ENOTDIR'])

/** Returns the hash of a server's name. The names of the server's files begin with this hash. */
const hashOf = (server: string): string => createHash('sha256').update(server).digest('hex').slice(0, 32)
/** Matches the names of this cache's files, finished or being written. Other files in the folder are left alone. */
const fileNamePattern = /^([0-9a-f]{32})(?:\.uses|\.pins)?\.json(?:\.tmp)?$/

/** A catalogue cache that stores its texts as files in one folder. */
export class CatalogueFiles implements CatalogueCache {
  readonly #folder: string
  /** The queues of the files that are being written or removed, by path. Each queue runs one operation at a time. */
  readonly #writing = new Map<string, LimitFunction>()

  constructor (folder: string) {
    this.#folder = folder
  }

  async * read (server: string): AsyncGenerator<string> {
    const file = await open(this.#path(server), 'r').catch(() => undefined)
    if (file) yield * file.createReadStream({ encoding: 'utf8' }) as AsyncIterable<string>
  }

  async write (server: string, text: Iterable<string>): Promise<void> { await this.#write(this.#path(server), text) }

  async readUses (server: string): Promise<string> { return await readIfExists(this.#path(server, '.uses')) }

  async writeUses (server: string, text: string): Promise<void> {
    await this.#write(this.#path(server, '.uses'), [text])
  }

  async readPins (server: string): Promise<string> { return await readIfExists(this.#path(server, '.pins')) }

  async writePins (server: string, text: string): Promise<void> {
    await this.#write(this.#path(server, '.pins'), [text], true)
  }

  async removePins (server: string): Promise<void> { await this.#remove(this.#path(server, '.pins')) }

  /** Replaces a file. @param isDurable whether the content must be on stable storage when the promise resolves */
  async #write (path: string, text: Iterable<string>, isDurable = false): Promise<void> {
    await this.#runExclusively(path, async () => {
      const file = await this.#create(`${path}.tmp`)
      try {
        await writeFile(file, text)
        if (isDurable) await file.sync()
      } finally {
        await file.close()
      }
      await rename(`${path}.tmp`, path)
    })
  }

  async remove (server: string): Promise<void> {
    for (const kind of ['', '.uses', '.pins'] as const) await this.#remove(this.#path(server, kind))
  }

  async #remove (path: string): Promise<void> {
    await this.#runExclusively(path, async () => { await rm(path, { force: true }) })
  }

  async keepOnly (servers: Iterable<string>): Promise<void> {
    const kept = new Set([...servers].map(hashOf))
    // If the folder does not exist, nothing was ever cached.
    for (const name of await readdir(this.#folder).catch((): string[] => [])) {
      const hash = fileNamePattern.exec(name)?.[1]
      if (hash !== undefined && !kept.has(hash)) await rm(join(this.#folder, name), { force: true })
    }
  }

  async waitForWrites (): Promise<void> {
    await Promise.allSettled([...this.#writing.values()].map(async (limit) => { await limit(() => {}) }))
  }

  /**
   * Opens a file for writing, and creates the folder if it is missing. This happens before `#write` reads the iterable
   * of texts, which can be read only once.
   */
  async #create (path: string): Promise<FileHandle> {
    try {
      return await open(path, 'w', 0o600)
    } catch (error) {
      if (!missingFileCodes.has(errorCode(error))) throw error
      makeFolder(this.#folder, 'DATA_DIR')
      return await open(path, 'w', 0o600)
    }
  }

  /** Runs work on a file once all earlier work on the file has ended. */
  async #runExclusively (path: string, work: () => Promise<void>): Promise<void> {
    const limit = this.#writing.get(path) ?? pLimit(1)
    this.#writing.set(path, limit)
    try {
      await limit(work)
    } finally {
      if (limit.activeCount + limit.pendingCount === 0) this.#writing.delete(path)
    }
  }

  /**
   * Returns the path of a file.
   * @param kind what it contains: the catalogue (empty), tool uses, or pinned definitions
   */
  #path (server: string, kind: '' | '.uses' | '.pins' = ''): string {
    return join(this.#folder, `${hashOf(server)}${kind}.json`)
  }
}

/** Reads a file as text. @returns an empty text if the file does not exist */
async function readIfExists (path: string): Promise<string> {
  return await readFile(path, 'utf8').catch((error: unknown) => {
    if (missingFileCodes.has(errorCode(error))) return ''
    throw error
  })
}
