/** Texts of more characters are not parsed as a whole, so that their values take no memory. */
export const largeText = 256 * 1024

/** The first `length` UTF-16 units of a text; one less where that would split a surrogate pair. */
export function truncate (text: string, length: number): string {
  if (text.length <= length) return text
  const head = text.slice(0, length)
  return /[\uD800-\uDBFF]$/.test(head) ? head.slice(0, -1) : head
}

/**
 * The memory that a text takes in V8, in bytes: one for each UTF-16 unit, or two where any of them is beyond U+00FF.
 * Texts without such characters are not searched, since V8 knows that they have none.
 */
export const memoryOf = (text: string): number => /[\u0100-\uffff]/.test(text) ? text.length * 2 : text.length

/**
 * A copy of a text, one byte a character where that is possible. For a part of a text that is kept: V8 would keep the
 * whole text with it, in as many bytes a character as that has.
 */
export function copyOf (part: string): string {
  const encoding = memoryOf(part) > part.length ? 'utf16le' : 'latin1'
  return Buffer.from(part, encoding).toString(encoding)
}

/** Max characters of the rest of a text that a substring may keep in memory; beyond: the substring is copied. */
const maxKeptRest = 1024

/** A part of a text, which keeps at most `maxKeptRest` characters of the rest in memory. */
export function partOf (text: string, start: number, end: number): string {
  const part = text.slice(start, end)
  return text.length - part.length > maxKeptRest ? copyOf(part) : part
}

/** A text without the byte order mark that some editors and runtimes write before it. */
export const withoutMark = (text: string): string => text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
