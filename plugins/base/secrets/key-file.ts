import { toKey, type Key } from './key.ts'
import { SecretFile } from './secret-file.ts'

/** The key of a gateway without ENCRYPTION_KEY, created when something is first encrypted. */
export class KeyFile {
  readonly #file: SecretFile
  #key: Key | undefined

  constructor (dataDir: string) {
    this.#file = new SecretFile(dataDir, {
      name: 'encryption.key',
      noun: 'encryption key',
      variable: 'ENCRYPTION_KEY',
      remedy: 'Put it back from a backup. Only when nothing was ever sealed with it, delete it: a new one is then made.'
    })
  }

  /** The key; undefined when there is no file. @throws Error with a sentence for a file that cannot be used */
  read (): Key | undefined {
    const secret = this.#key === undefined ? this.#file.read() : undefined
    if (secret !== undefined) this.#key = toKey(secret)
    return this.#key
  }

  /** Creates the file. Of several processes that do so at once, one wins, and all get its key. @throws StorageError */
  create (): Key {
    this.#key = toKey(this.#file.create())
    return this.#key
  }
}
