import { createHash } from 'node:crypto'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { CatalogueCache } from '../store.ts'

/** The catalogue cache as one file a server, named by the hash of the server's name. */
export class CatalogueFiles implements CatalogueCache {
  readonly #folder: string
  /** The write under way for each path: the next one waits for it. */
  readonly #writing = new Map<string, Promise<void>>()

  constructor (folder: string) {
    this.#folder = folder
  }

  async read (server: string): Promise<string | undefined> {
    return await readFile(this.#path(server), 'utf8').catch(() => undefined)
  }

  async write (server: string, text: Iterable<string>): Promise<void> {
    const path = this.#path(server)
    const writing = (this.#writing.get(path) ?? Promise.resolve()).catch(() => {}).then(async () => {
      await mkdir(this.#folder, { recursive: true, mode: 0o700 })
      await writeFile(`${path}.tmp`, text, { mode: 0o600 })
      await rename(`${path}.tmp`, path)
    })
    this.#writing.set(path, writing)
    await writing.finally(() => { if (this.#writing.get(path) === writing) this.#writing.delete(path) })
  }

  #path (server: string): string {
    return join(this.#folder, `${createHash('sha256').update(server).digest('hex').slice(0, 32)}.json`)
  }
}
