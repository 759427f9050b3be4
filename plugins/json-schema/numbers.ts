const QUOTE = 0x22
const BACKSLASH = 0x5c
const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39
/** A digit, or one of `.eE+-`. */
const isNumbers = (code: number): boolean =>
  isDigit(code) || code === 0x2e || code === 0x65 || code === 0x45 || code === 0x2b || code === 0x2d

/**
 * The first number in a JSON text that `JSON.parse` would change: 1e400, and whole numbers beyond 2^53 that are written out.
 * @param text a text that is not valid JSON gives an arbitrary result
 * @returns undefined where every number keeps its value
 */
export function inexactNumber (text: string): string | undefined {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = endOfString(text, at)
    else if (isDigit(code)) {
      const start = at
      while (isNumbers(text.charCodeAt(at))) at++
      // Short ones, which are most, are exact.
      if (at - start < 4) continue
      const number = text.slice(start, at)
      if (!Number.isFinite(Number(number)) || (/^\d+$/.test(number) && !Number.isSafeInteger(Number(number)))) return number
    }
  }
  return undefined
}

/** The index of the closing quote. @param at the index of the opening quote */
function endOfString (text: string, at: number): number {
  for (let quote = text.indexOf('"', at + 1); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    let slash = quote - 1
    while (text.charCodeAt(slash) === BACKSLASH) slash--
    if ((quote - slash) % 2 === 1) return quote
  }
  return text.length
}
