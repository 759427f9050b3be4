import { createSecretKey, hkdfSync, scrypt, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import { SecretFile } from './secret-file.ts'

/** An encryption key. */
interface Key {
  /** 8 hex digits. Every text sealed with the key contains them (`v1.<id>.`); they reveal nothing about the key. */
  readonly id: string
  readonly secret: KeyObject
}

/** Derives a key from 32 secret bytes (HKDF). The id is derived independently, so it is not a hash of the key. */
export function deriveKey (root: Uint8Array): Key {
  const part = (label: string, length: number): Buffer =>
    Buffer.from(hkdfSync('sha256', root, '', `tool-hub ${label}`, length))
  return { id: part('key id', 4).toString('hex'), secret: createSecretKey(part('sealing', 32)) }
}

const derive = promisify<string, string, number, { N: number, r: number, p: number, maxmem: number }, Buffer>(scrypt)

/**
 * The scrypt parameters for passphrases. They must never change, or sealed texts would no longer open. The salt is
 * fixed, since all replicas must derive the same key from the passphrase alone. One table of guesses can therefore
 * attack many gateways, which is why passphrases have a min length.
 */
const passphraseParams = {
  salt: 'tool-hub encryption key', length: 32, cost: { N: 2 ** 15, r: 8, p: 3, maxmem: 64 * 1024 * 1024 }
}
/** Min length of a passphrase, in characters. */
const minPassphrase = 16

/**
 * Converts one key of ENCRYPTION_KEY, in hex, base64 or a passphrase, to 32 bytes.
 * @param which the number of the key, for the error message, which does not show the key
 * @throws Error with a sentence
 */
async function readRootKey (text: string, which: number): Promise<Buffer> {
  if (/^[0-9a-f]{64}$/i.test(text)) return Buffer.from(text, 'hex')
  const plain = text.replace(/=$/, '').replaceAll('+', '-').replaceAll('/', '_')
  const bytes = Buffer.from(plain, 'base64url')
  if (bytes.length === 32 && bytes.toString('base64url') === plain) return bytes
  if ([...text].length >= minPassphrase) {
    return await derive(text.normalize('NFKC'), passphraseParams.salt, passphraseParams.length, passphraseParams.cost)
  }
  throw new Error(
    `Key ${which} of ENCRYPTION_KEY is too short. Use 32 random bytes in hex (\`openssl rand -hex 32\`) or base64, ` +
    `or a passphrase of at least ${minPassphrase} characters; separate keys with commas.`
  )
}

/** Parses the keys of ENCRYPTION_KEY, in order. @throws Error with a sentence that says what to set */
async function parseKeys (text: string): Promise<Key[]> {
  const parts = text.split(',').map((part) => part.trim()).filter((part) => part !== '')
  if (parts.length === 0) {
    throw new Error(
      'ENCRYPTION_KEY contains no key. Set it to 32 random bytes in hex (`openssl rand -hex 32`), or leave it unset.'
    )
  }
  const roots: Buffer[] = []
  for (const part of parts) roots.push(await readRootKey(part, roots.length + 1))
  return roots.map(deriveKey)
}

/** The encryption keys: the newest one encrypts, all of them decrypt. */
export class KeyRing {
  readonly #givenKeys: readonly Key[]
  readonly #file: SecretFile
  #stored: Key | undefined

  /** @param given the keys of ENCRYPTION_KEY, newest first; if there are none, the key in the file encrypts */
  constructor (given: readonly Key[], file: SecretFile) {
    this.#givenKeys = given
    this.#file = file
  }

  /** The key in the file. While there is none, each access looks for the file, since another process may create it. */
  get #fileKey (): Key | undefined {
    const secret = this.#stored === undefined ? this.#file.read() : undefined
    if (secret !== undefined) this.#stored = deriveKey(secret)
    return this.#stored
  }

  /** The key that encrypts; undefined if there is none yet. */
  get newest (): Key | undefined { return this.#givenKeys[0] ?? this.#fileKey }

  /** Returns the key that encrypts, and creates it if there is none. @throws StorageError if it cannot be stored */
  sealingKey (): Key { return this.newest ?? (this.#stored = deriveKey(this.#file.create())) }

  find (id: string): Key | undefined {
    return this.#givenKeys.find((key) => key.id === id) ?? (this.#fileKey?.id === id ? this.#fileKey : undefined)
  }
}

export interface KeyRingOptions {
  /** The folder of the key file, which is created on first use if ENCRYPTION_KEY is not set. */
  dataDir: string
  /** ENCRYPTION_KEY: one or more keys, separated by commas; the first one encrypts. */
  encryptionKey?: string
}

/**
 * Reads the keys of ENCRYPTION_KEY, and the key file. The key in the file decrypts even if ENCRYPTION_KEY is set.
 * @throws Error with a sentence for an invalid key, and for a key file that is empty, garbled or readable by other
 * users
 */
export async function openKeyRing ({ dataDir, encryptionKey }: KeyRingOptions): Promise<KeyRing> {
  const file = new SecretFile(dataDir, {
    name: 'encryption.key',
    noun: 'encryption key',
    variable: 'ENCRYPTION_KEY',
    remedy: 'Restore it from a backup. If nothing was ever encrypted with it, delete it: a new one is then generated.'
  })
  file.read()
  return new KeyRing(encryptionKey === undefined ? [] : await parseKeys(encryptionKey), file)
}
