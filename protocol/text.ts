/** The first `length` UTF-16 units of a text; one less where that would split a surrogate pair. */
export function cut (text: string, length: number): string {
  if (text.length <= length) return text
  const head = text.slice(0, length)
  return /[\uD800-\uDBFF]$/.test(head) ? head.slice(0, -1) : head
}
