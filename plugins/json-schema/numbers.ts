const QUOTE = 0x22
const BACKSLASH = 0x5c
const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39

/**
 * The first number in a JSON text that would become another one by being read: 1e400, and whole numbers that are written out beyond
 * 2^53. Undefined: there is none. Text that is no JSON gives anything, but returns.
 */
export function inexactNumber (text: string): string | undefined {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = endOfString(text, at)
    else if (isDigit(code)) {
      const start = at
      while (at < text.length && /[0-9.eE+-]/.test(text.charAt(at))) at++
      const number = text.slice(start, at)
      if (!Number.isFinite(Number(number)) || (/^\d+$/.test(number) && !Number.isSafeInteger(Number(number)))) return number
    }
  }
  return undefined
}

/** Where the closing quote stands. */
function endOfString (text: string, at: number): number {
  for (let quote = text.indexOf('"', at + 1); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    let slash = quote - 1
    while (text.charCodeAt(slash) === BACKSLASH) slash--
    if ((quote - slash) % 2 === 1) return quote
  }
  return text.length
}
