/** A place in a text: `text.slice(start, end)`. */
export interface Range { readonly start: number, readonly end: number }

/** Finds the places of one kind of content in a text, in linear time. */
export type Find = (text: string) => Iterable<Range>
