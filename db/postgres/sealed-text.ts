import type { Vault } from '../store.ts'

/** The columns that store an encrypted text: a mask in `data`, and the encrypted text in `sealed`. */
export interface SealedText { readonly data: { secret: string }, readonly sealed: string | null }

/** Encrypts a text. @param place identifies where the result is stored; decryption requires the same place */
export function sealText (vault: Vault, text: string, place: string): SealedText {
  // The vault's mask shows the last four characters of a long text, unless they contain a space. The appended space
  // keeps the end of the text out of the mask.
  const { value: data, sealed } = vault.encryptSecrets({ secret: `${text} ` }, place)
  return { data, sealed }
}

/** Re-encrypts the result of `sealText` with the newest key. @throws Error when the result cannot be decrypted */
export function resealText (vault: Vault, { data, sealed }: SealedText, place: string): SealedText {
  const resealed = vault.encryptSecrets(vault.decryptSecrets(data, sealed, place), place)
  return { data: resealed.value, sealed: resealed.sealed }
}

/** Reverses `sealText`. @throws Error when the key is not available, or the text was encrypted for another place */
export const unsealText = (vault: Vault, { data, sealed }: SealedText, place: string): string =>
  vault.decryptSecrets(data, sealed, place).secret

/** Reverses `sealText`; returns undefined if the text cannot be decrypted. */
export function unsealTextIfPossible (vault: Vault, stored: SealedText, place: string): string | undefined {
  try {
    return unsealText(vault, stored, place)
  } catch {
    return undefined
  }
}
