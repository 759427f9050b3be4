import { toIndexableText } from '../text.ts'

/** Replaces characters that PostgreSQL cannot store in a text: NUL and unpaired surrogates. */
const toStorableText = (text: string): string =>
  text.isWellFormed() && !text.includes('\0') ? text : text.replace(/\0|\p{Surrogate}/gu, '\ufffd')
export const toStorableTextOrNone = (text: string | undefined): string | undefined =>
  text === undefined ? undefined : toStorableText(text)
/** Shortens a text for a column with an index. */
export const toIndexedText = (text: string): string => toIndexableText(toStorableText(text))
export const toIndexedTextOrNone = (text: string | undefined): string | undefined =>
  text === undefined ? undefined : toIndexedText(text)
