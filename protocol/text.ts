/** Max length of texts that are parsed completely, in characters: the values of longer ones would take much memory. */
export const largeTextLength = 256 * 1024

/** Returns the first `length` UTF-16 units of a text; one fewer if that would split a surrogate pair. */
export function truncate (text: string, length: number): string {
  if (text.length <= length) return text
  const head = text.slice(0, length)
  return /[\uD800-\uDBFF]$/.test(head) ? head.slice(0, -1) : head
}

/**
 * Returns the memory that a text takes in V8, in bytes: one per UTF-16 unit, or two if any unit is above U+00FF. The
 * search is fast for one-byte texts, since V8 knows that they have no such unit.
 */
export const memoryOf = (text: string): number => /[\u0100-\uffff]/.test(text) ? text.length * 2 : text.length

/**
 * Copies a part of a text, so that only the part stays in memory: in V8, a substring keeps the whole text. The copy
 * takes one byte per character, if possible.
 */
export function detachedCopy (part: string): string {
  const encoding = memoryOf(part) > part.length ? 'utf16le' : 'latin1'
  return Buffer.from(part, encoding).toString(encoding)
}

/** Max unused characters that a substring may keep in memory. */
const maxKeptRest = 1024

/** Returns a part of a text; a copy if it would keep more than `maxKeptRest` unused characters in memory. */
export function detachedSlice (text: string, start: number, end: number): string {
  const part = text.slice(start, end)
  return text.length - part.length > maxKeptRest ? detachedCopy(part) : part
}

/**
 * Escapes, as JSON does, the characters that JSON allows and terminals obey or hide: C1 control characters, those that
 * reorder text, and invisible tags.
 */
export const escapeTerminalControls = (text: string): string => text.replace(
  /[\u007f-\u009f\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]/gu,
  (found) => found.split('').map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')
)

/** Removes a byte-order mark, which some editors and runtimes write at the start of a text. */
export const withoutBom = (text: string): string => text.charCodeAt(0) === 0xfeff ? text.slice(1) : text

/** Decodes percent-encoded text; undefined if it is not valid. */
export function percentDecode (text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
