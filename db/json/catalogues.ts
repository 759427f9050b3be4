import { createHash } from 'node:crypto'
import { open, readdir, readFile, rename, rm, writeFile, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import pLimit, { type LimitFunction } from 'p-limit'
import { errorCode } from '../errors.ts'
import { makeFolder } from '../folder.ts'
import type { CatalogueCache } from '../store.ts'

/** The system's error codes for a file that does not exist, or whose folder does not. */
const missingFileCodes: ReadonlySet<string | undefined> = new Set(['ENOENT', 'ENOTDIR'])

/** The first part of the names of a server's files. */
const hashOf = (server: string): string => createHash('sha256').update(server).digest('hex').slice(0, 32)
/** Matches the file names of this cache, complete or being written. Other files in the folder are left alone. */
const fileNamePattern = /^([0-9a-f]{32})(?:\.uses|\.pins)?\.json(?:\.tmp)?$/

/** The catalogue cache as files in one folder. The name of a file begins with a hash of the server's name. */
export class CatalogueFiles implements CatalogueCache {
  readonly #folder: string
  /** The files that are being written, each with a queue of one write at a time. */
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

  /** @param isDurable whether the file is on stable storage when the promise resolves */
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
    // A missing folder means that nothing was ever cached.
    for (const name of await readdir(this.#folder).catch((): string[] => [])) {
      const hash = fileNamePattern.exec(name)?.[1]
      if (hash !== undefined && !kept.has(hash)) await rm(join(this.#folder, name), { force: true })
    }
  }

  async waitForWrites (): Promise<void> {
    await Promise.allSettled([...this.#writing.values()].map(async (limit) => { await limit(() => {}) }))
  }

  /**
   * Opens a new file, and creates its folder if necessary. `#write` calls this before it reads the iterable of texts,
   * so that the retry loses no text.
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

  /** Runs work on a file after all earlier work on it. */
  async #runExclusively (path: string, work: () => Promise<void>): Promise<void> {
    const limit = this.#writing.get(path) ?? pLimit(1)
    this.#writing.set(path, limit)
    try {
      await limit(work)
    } finally {
      if (limit.activeCount + limit.pendingCount === 0) this.#writing.delete(path)
    }
  }

  /** @param kind the data: the catalogue, the uses of tools, or pinned definitions */
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
