import { createHash } from 'node:crypto'
import type { PinStore, StoredPins } from './ports/pins.ts'
import type { CatalogueCache } from './store.ts'

/**
 * The pinned definitions of a gateway without a database: one file per server, beside the file of the server's
 * catalogue in DATA_DIR.
 */
export class FilePinStore implements PinStore {
  readonly isShared = false
  readonly #cache: Pick<CatalogueCache, 'readPins' | 'writePins' | 'removePins'>

  constructor (cache: Pick<CatalogueCache, 'readPins' | 'writePins' | 'removePins'>) {
    this.#cache = cache
  }

  async find (server: string): Promise<StoredPins | undefined> {
    const text = await this.#cache.readPins(server)
    if (text === '') return undefined
    return { value: JSON.parse(text) as unknown, version: versionOf(text) }
  }

  async swap (server: string, before: string | undefined, value: object): Promise<string | undefined> {
    const stored = await this.#cache.readPins(server)
    if ((stored === '' ? undefined : versionOf(stored)) !== before) return undefined
    const text = JSON.stringify(value)
    await this.#cache.writePins(server, text)
    return versionOf(text)
  }

  async remove (servers: readonly string[]): Promise<void> {
    for (const server of servers) await this.#cache.removePins(server)
  }

  /**
   * Returns an empty list: no other process changes pins, and the catalogue cache itself removes the files of removed
   * servers.
   */
  async list (): Promise<Array<{ server: string, version: string }>> { return [] }
}

const versionOf = (text: string): string => createHash('sha256').update(text).digest('base64url')
