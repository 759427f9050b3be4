import { KeyFile } from './key-file.ts'
import { parseKeys, type Key } from './key.ts'

/** The available keys: the newest one seals, and all of them open. */
export class KeyRing {
  readonly #given: readonly Key[]
  readonly #file: KeyFile

  /** @param given the keys of ENCRYPTION_KEY, the newest first; when there are none, the key of the file seals */
  constructor (given: readonly Key[], file: KeyFile) {
    this.#given = given
    this.#file = file
  }

  /** The key that seals; undefined when there is none yet. */
  get newest (): Key | undefined { return this.#given[0] ?? this.#file.read() }

  /** The key that seals, created when there is none. @throws StorageError when it cannot be stored */
  sealing (): Key { return this.newest ?? this.#file.create() }

  /** The key with this id. The file is read again, since another process may have created it meanwhile. */
  find (id: string): Key | undefined {
    const given = this.#given.find((key) => key.id === id)
    if (given !== undefined) return given
    const stored = this.#file.read()
    return stored?.id === id ? stored : undefined
  }
}

export interface KeyRingOptions {
  /** The folder of the key file, which is created when something is sealed and no key is given. */
  dataDir: string
  /** ENCRYPTION_KEY: one or more keys, separated by commas; the first one seals. */
  encryptionKey?: string
}

/**
 * The keys of ENCRYPTION_KEY, and the one of the key file, which still opens when there are others.
 * @throws Error with a sentence for an invalid key, and for a key file that is empty, garbled or readable by other users
 */
export async function openKeyRing ({ dataDir, encryptionKey }: KeyRingOptions): Promise<KeyRing> {
  const file = new KeyFile(dataDir)
  file.read()
  return new KeyRing(encryptionKey === undefined ? [] : await parseKeys(encryptionKey), file)
}
