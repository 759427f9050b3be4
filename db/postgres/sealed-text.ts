import type { Vault } from '../store.ts'

/** The columns of an encrypted text: a mask in `data`, and the encrypted text in `sealed`. */
export interface SealedText { readonly data: { secret: string }, readonly sealed: string | null }

/** Encrypts a text. @param place names where the result is stored; it can be decrypted for this place only */
export function sealText (vault: Vault, text: string, place: string): SealedText {
  // The vault's mask shows the last characters of a text: the trailing space keeps the end of the text out of it.
  const { value: data, sealed } = vault.encryptSecrets({ secret: `${text} ` }, place)
  return { data, sealed }
}

/** Re-encrypts the result of `sealText` with the newest key. @throws Error when it cannot be decrypted */
export function resealText (vault: Vault, { data, sealed }: SealedText, place: string): SealedText {
  const resealed = vault.encryptSecrets(vault.decryptSecrets(data, sealed, place), place)
  return { data: resealed.value, sealed: resealed.sealed }
}

/** Reverses `sealText`. @throws Error when the key is not available, or the text was encrypted for another place */
export const unsealText = (vault: Vault, { data, sealed }: SealedText, place: string): string =>
  vault.decryptSecrets(data, sealed, place).secret

/** Like `unsealText`; undefined if the text cannot be decrypted. */
export function unsealTextIfPossible (vault: Vault, stored: SealedText, place: string): string | undefined {
  try {
    return unsealText(vault, stored, place)
  } catch {
    return undefined
  }
}
