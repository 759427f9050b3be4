import type { Vault } from '../store.ts'

/** A text as two columns: its mask, and the sealed text. */
export interface SealedText { readonly data: { secret: string }, readonly sealed: string | null }

/** Seals a text. @param place it is stored in; it cannot be opened for another */
export function sealText (vault: Vault, text: string, place: string): SealedText {
  // The trailing space keeps the last characters of the text out of its mask.
  const { value: data, sealed } = vault.hide({ secret: `${text} ` }, place)
  return { data, sealed }
}

/** Seals with the newest key what `sealText` has sealed. @throws Error as `openText` */
export function resealText (vault: Vault, { data, sealed }: SealedText, place: string): SealedText {
  const anew = vault.hide(vault.reveal(data, sealed, place), place)
  return { data: anew.value, sealed: anew.sealed }
}

/** Reverses `sealText`. @throws Error when the key is not available, or the text was sealed for another place */
export const openText = (vault: Vault, { data, sealed }: SealedText, place: string): string =>
  vault.reveal(data, sealed, place).secret
