/** A place in a text: `text.slice(start, end)`. */
export interface Range { readonly start: number, readonly end: number }

/** Finds the places of one kind of content in a text, in linear time. */
export type Find = (text: string) => Iterable<Range>

/**
 * The matches of a pattern in a text, from the left.
 * @param pattern global; as opposed to `matchAll`, it is not compiled anew for each text
 */
export function * matchesOf (pattern: RegExp, text: string): Generator<RegExpExecArray> {
  pattern.lastIndex = 0
  for (let match = pattern.exec(text); match; match = pattern.exec(text)) yield match
}
