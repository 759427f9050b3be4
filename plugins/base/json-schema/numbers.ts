import { skipString } from '../../../protocol/json.ts'

const QUOTE = 0x22
const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39
/** A digit, or one of `.eE+-`. */
const isNumbers = (code: number): boolean =>
  isDigit(code) || code === 0x2e || code === 0x65 || code === 0x45 || code === 0x2b || code === 0x2d

/**
 * The first number in a JSON text that `JSON.parse` would change: 1e400, and whole numbers beyond 2^53 that are written
 * out.
 * @param text a text that is not valid JSON gives an arbitrary result
 * @returns undefined where every number keeps its value
 */
export function inexactNumber (text: string): string | undefined {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = skipString(text, at) - 1
    else if (isDigit(code)) {
      const start = at
      while (isNumbers(text.charCodeAt(at))) at++
      // Short ones, which are most, are exact.
      if (at - start < 4) continue
      const number = text.slice(start, at)
      if (!Number.isFinite(Number(number)) || (/^\d+$/.test(number) && !Number.isSafeInteger(Number(number)))) {
        return number
      }
    }
  }
  return undefined
}

/**
 * Whether a text is a decimal number, as JSON writes it or with a plus sign, leading zeros or an open fraction.
 * No two parts of the pattern take the same digits: a long text would be read anew from each of them.
 */
export const isDecimal = (text: string): boolean => /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i.test(text)

/** Whether a decimal number is a whole one, as `1.0` and `1e2` are. @param text one that `isDecimal` accepts */
export function isWhole (text: string): boolean {
  const [, whole = '', fraction = '', exponent = '0'] = /^[+-]?(\d*)(?:\.(\d*))?(?:e([+-]?\d+))?$/i.exec(text) ?? []
  const digits = whole + fraction
  let significant = digits.length
  while (significant > 0 && digits[significant - 1] === '0') significant--
  return significant === 0 || whole.length + Number(exponent) >= significant
}

/** Whether a text is a number that is too large to be passed on exactly as a JavaScript number. */
export const isTooLarge = (text: string): boolean =>
  isDecimal(text) && (inexactNumber(text) !== undefined || (isWhole(text) && !Number.isSafeInteger(Number(text))))
