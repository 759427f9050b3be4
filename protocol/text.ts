/** Max length of texts that are parsed as a whole, in characters: values of longer ones take too much memory. */
export const largeText = 256 * 1024

/** The first `length` UTF-16 units of a text; one fewer where that would split a surrogate pair. */
export function truncate (text: string, length: number): string {
  if (text.length <= length) return text
  const head = text.slice(0, length)
  return /[\uD800-\uDBFF]$/.test(head) ? head.slice(0, -1) : head
}

/**
 * The memory of a text in V8, in bytes: one per UTF-16 unit, or two when any unit is beyond U+00FF. The search is cheap
 * for one-byte texts, since V8 knows that they have no such unit.
 */
export const memoryOf = (text: string): number => /[\u0100-\uffff]/.test(text) ? text.length * 2 : text.length

/**
 * Copies a part of a text that is to be kept, with one byte per character if possible: a substring in V8 keeps the
 * whole text in memory, with its width.
 */
export function detachedCopy (part: string): string {
  const encoding = memoryOf(part) > part.length ? 'utf16le' : 'latin1'
  return Buffer.from(part, encoding).toString(encoding)
}

/** Max characters of the rest that a substring may keep in memory; beyond: the substring is copied. */
const maxKeptRest = 1024

/** A part of a text that keeps at most `maxKeptRest` characters of the rest in memory. */
export function detachedSlice (text: string, start: number, end: number): string {
  const part = text.slice(start, end)
  return text.length - part.length > maxKeptRest ? detachedCopy(part) : part
}

/** Removes a byte-order mark, which some editors and runtimes write at the start of a text. */
export const withoutBom = (text: string): string => text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
