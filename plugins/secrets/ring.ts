import { KeyFile } from './key-file.ts'
import { parseKeys, type Key } from './key.ts'

/** The keys that are at hand: the newest seals, all open. */
export class KeyRing {
  readonly #given: readonly Key[]
  readonly #file: KeyFile

  /** @param given the keys of the environment, the newest first; with none of them the one of the file seals */
  constructor (given: readonly Key[], file: KeyFile) {
    this.#given = given
    this.#file = file
  }

  /** The key that seals; undefined: there is none yet. */
  get newest (): Key | undefined { return this.#given[0] ?? this.#file.read() }

  /** The key that seals, made now if there is none. @throws StorageError when it cannot be kept */
  sealing (): Key { return this.newest ?? this.#file.make() }

  /** The key of an id. The file is looked at as well: another process may have made it meanwhile. */
  find (id: string): Key | undefined {
    const given = this.#given.find((key) => key.id === id)
    if (given !== undefined) return given
    const kept = this.#file.read()
    return kept?.id === id ? kept : undefined
  }
}

export interface KeyRingOptions {
  /** Where the key file is, or will be when something is sealed and no key is given. */
  dataDir: string
  /** ENCRYPTION_KEY: one key or several behind commas, the one that seals first. */
  encryptionKey?: string
}

/**
 * The keys that the environment gives, and the one of the key file, which still opens when there are others.
 * @throws Error with a sentence for a key that is none, and for a key file that is empty, garbled or open to others
 */
export async function openKeyRing ({ dataDir, encryptionKey }: KeyRingOptions): Promise<KeyRing> {
  const file = new KeyFile(dataDir)
  file.read()
  return new KeyRing(encryptionKey === undefined ? [] : await parseKeys(encryptionKey), file)
}
