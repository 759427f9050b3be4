import { toIndexableText } from '../text.ts'

/** Replaces characters that PostgreSQL cannot store by U+FFFD: NUL and unpaired surrogates. */
export const toStorableText = (text: string): string =>
  text.isWellFormed() && !text.includes('\0') ? text : text.replace(/\0|\p{Surrogate}/gu, '\ufffd')

/** Converts a text to the value of a filter column of a call, which is shortened if it is too long for an index. */
export const toFilterText = (text: string): string => toIndexableText(toStorableText(text))
