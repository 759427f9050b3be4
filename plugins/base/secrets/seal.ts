import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { deriveKey, type KeyRing } from './key-ring.ts'

/** Encrypts and authenticates texts. */
export interface Sealer {
  /** @param place where the result is stored, or its purpose; `unseal` needs the same place */
  readonly seal: (text: string, place: string) => string
  /** @param place the same as for `seal` @throws Error if the text cannot be decrypted */
  readonly unseal: (sealed: string, place: string) => string
}

/** The part of a key ring that `seal` and `unseal` use. */
type SealingKeys = Pick<KeyRing, 'sealingKey' | 'find'>

const version = 'v1'
const cipher = 'aes-256-gcm'
const nonceLength = 12
const tagLength = 16

/** The associated data, which bind a sealed text to its place and the id of its key. */
const associatedData = (id: string, place: string): Buffer => Buffer.from(`tool-hub.${version}.${id}.${place}`)

/**
 * Encrypts and authenticates a text with AES-256-GCM and the newest key, which is created if there is none. The nonce
 * is random, so results for the same text differ; one key may seal 2^32 texts.
 * @param text must be well-formed (no lone surrogates)
 * @param place where the result is stored, or its purpose; `unseal` needs the same place
 * @returns `v1.<key id>.<base64url of nonce, ciphertext and tag>`
 * @throws StorageError if a key must be created and cannot be stored
 */
export function seal (ring: SealingKeys, text: string, place: string): string {
  const { id, secret } = ring.sealingKey()
  const nonce = randomBytes(nonceLength)
  const encrypting = createCipheriv(
    cipher, secret, nonce, { authTagLength: tagLength }
  ).setAAD(associatedData(id, place))
  const parts = [nonce, encrypting.update(text, 'utf8'), encrypting.final(), encrypting.getAuthTag()]
  return `${version}.${id}.${Buffer.concat(parts).toString('base64url')}`
}

/**
 * Decrypts a text that `seal` created for the same place.
 * @throws Error with a sentence if the key is not available, if the text was changed, or if it was sealed for another
 * place
 */
export function unseal (ring: SealingKeys, sealed: string, place: string): string {
  const [, id = '', encoded = ''] = /^v1\.([0-9a-f]{8})\.([\w-]+)$/.exec(sealed) ?? []
  const bytes = Buffer.from(encoded, 'base64url')
  // Rejects changes to the unused bits of the last base64url character.
  if (bytes.length < nonceLength + tagLength || bytes.toString('base64url') !== encoded) {
    throw new Error(
      `The encrypted secrets of ${JSON.stringify(place)} are not in the expected format (${version}). ` +
      'They were cut off or changed: restore them from a backup, or enter them again.'
    )
  }
  const key = ring.find(id)
  if (key === undefined) {
    throw new Error(
      `The secrets of ${JSON.stringify(place)} are encrypted with key ${id}, which is neither in ` +
      'ENCRYPTION_KEY nor in the key file in DATA_DIR. Append it to ENCRYPTION_KEY, after a comma; if it is lost, ' +
      'enter the secrets again.'
    )
  }
  const decrypting = createDecipheriv(cipher, key.secret, bytes.subarray(0, nonceLength), { authTagLength: tagLength })
    .setAAD(associatedData(id, place))
    .setAuthTag(bytes.subarray(-tagLength))
  try {
    return Buffer.concat([decrypting.update(bytes.subarray(nonceLength, -tagLength)), decrypting.final()])
      .toString('utf8')
  } catch {
    throw new Error(
      `The secrets of ${JSON.stringify(place)} cannot be decrypted: the encrypted text was changed, or belongs ` +
      'elsewhere. Restore it from a backup, or enter the secrets again.'
    )
  }
}

/** Whether a text was sealed with an older key and can be sealed again. False if the older key is not available. */
export function needsResealing (ring: KeyRing, sealed: string): boolean {
  const id = sealed.split('.')[1] ?? ''
  return id !== ring.newest?.id && ring.find(id) !== undefined
}

/** Whether the key that sealed a text is not available. */
export const isKeyMissing = (ring: KeyRing, sealed: string): boolean =>
  ring.find(sealed.split('.')[1] ?? '') === undefined

/** Creates a sealer that uses the keys of a ring. */
export const createSealer = (ring: SealingKeys): Sealer => ({
  seal: (text, place) => seal(ring, text, place),
  unseal: (sealed, place) => unseal(ring, sealed, place)
})

/** Creates a sealer with a new random key. Only the same sealer can decrypt its texts. */
export function createProcessSealer (): Sealer {
  const key = deriveKey(randomBytes(32))
  return createSealer({ sealingKey: () => key, find: (id) => id === key.id ? key : undefined })
}
