/** A range of a text: `text.slice(start, end)`. */
export interface TextRange { readonly start: number, readonly end: number }

/** Finds the ranges of one kind of content in a text, in linear time. */
export type FindRanges = (text: string) => Iterable<TextRange>

/**
 * Yields the matches of a pattern in a text, from left to right.
 * @param pattern a global pattern that does not match the empty text. It is not compiled again, as `matchAll` would do,
 *   but its `lastIndex` is used: iterate over one text at a time
 */
export function * matchesOf (pattern: RegExp, text: string): Generator<RegExpExecArray> {
  pattern.lastIndex = 0
  for (let match = pattern.exec(text); match; match = pattern.exec(text)) yield match
}
