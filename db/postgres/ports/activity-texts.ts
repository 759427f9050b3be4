import { toIndexableText } from '../text.ts'

/** Replaces the characters that PostgreSQL cannot store (NUL and unpaired surrogates) by U+FFFD. */
export const toStorableText = (text: string): string =>
  text.isWellFormed() && !text.includes('\0') ? text : text.replace(/\0|\p{Surrogate}/gu, '\ufffd')

/** Converts a text to its form in a filter column, which is shortened if it is too long for an index. */
export const toFilterText = (text: string): string => toIndexableText(toStorableText(text))
