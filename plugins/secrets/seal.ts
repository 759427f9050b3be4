import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import type { KeyRing } from './ring.ts'

const version = 'v1'
const cipher = 'aes-256-gcm'
const nonceLength = 12
const tagLength = 16

/** What is authenticated beside the text: moved elsewhere, or under another key's id, it does not open. */
const boundTo = (id: string, place: string): Buffer => Buffer.from(`tool-hub.${version}.${id}.${place}`)

/**
 * Encrypts and authenticates a text with AES-256-GCM and the newest key, which is made first if there is none.
 * The nonce is random, so the same text seals to another one each time; a key is good for 2^32 of them.
 * @param text well-formed (no lone surrogates), of any length
 * @param place where the result is kept or what it is for; it opens for no other
 * @returns `v1.<key id>.<base64url of nonce, ciphertext and tag>`
 * @throws StorageError when a key has to be made and cannot be kept
 */
export function seal (ring: KeyRing, text: string, place: string): string {
  const { id, secret } = ring.sealing()
  const nonce = randomBytes(nonceLength)
  const encrypting = createCipheriv(cipher, secret, nonce, { authTagLength: tagLength }).setAAD(boundTo(id, place))
  const parts = [nonce, encrypting.update(text, 'utf8'), encrypting.final(), encrypting.getAuthTag()]
  return `${version}.${id}.${Buffer.concat(parts).toString('base64url')}`
}

/**
 * Opens what `seal` made for the same place.
 * @throws Error with a sentence when its key is not at hand, when it was changed, or when it was sealed for another place
 */
export function unseal (ring: KeyRing, sealed: string, place: string): string {
  const [, id = '', encoded = ''] = /^v1\.([0-9a-f]{8})\.([\w-]+)$/.exec(sealed) ?? []
  const bytes = Buffer.from(encoded, 'base64url')
  // The last character may hold bits that belong to no byte: those, too, are as they were made.
  if (bytes.length < nonceLength + tagLength || bytes.toString('base64url') !== encoded) {
    throw new Error(
      `What is sealed for ${JSON.stringify(place)} is no sealed text (${version}). It was cut or changed: take it from a backup, or give its secrets anew.`
    )
  }
  const key = ring.find(id)
  if (key === undefined) {
    throw new Error(
      `The secrets of ${JSON.stringify(place)} are sealed with key ${id}, which is neither among those of ENCRYPTION_KEY nor that of the key file in DATA_DIR. Add it to ENCRYPTION_KEY, behind a comma; if it is lost, give the secrets anew.`
    )
  }
  const decrypting = createDecipheriv(cipher, key.secret, bytes.subarray(0, nonceLength), { authTagLength: tagLength })
    .setAAD(boundTo(id, place))
    .setAuthTag(bytes.subarray(-tagLength))
  try {
    return Buffer.concat([decrypting.update(bytes.subarray(nonceLength, -tagLength)), decrypting.final()]).toString('utf8')
  } catch {
    throw new Error(
      `The secrets of ${JSON.stringify(place)} do not open: the sealed text was changed, or made for another place. Take it from a backup, or give the secrets anew.`
    )
  }
}

/** Whether a sealed text should be sealed anew: an older key made it. One whose key is not at hand cannot be, and must be left as it is. */
export function isOutdated (ring: KeyRing, sealed: string): boolean {
  const id = sealed.split('.')[1] ?? ''
  return id !== ring.newest?.id && ring.find(id) !== undefined
}
