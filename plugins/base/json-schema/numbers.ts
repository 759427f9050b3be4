import { skipString } from '../../../protocol/json.ts'

const QUOTE = 0x22
const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39
/** Whether a character is a digit, or one of `.eE+-`. */
const isNumberChar = (code: number): boolean =>
  isDigit(code) || code === 0x2e || code === 0x65 || code === 0x45 || code === 0x2b || code === 0x2d

/**
 * Finds the first number in a JSON text that `JSON.parse` would change: one beyond the range of a double (1e400), or an
 * integer without exponent beyond 2^53. Fractions are not checked.
 * @param text must be valid JSON, otherwise the result is arbitrary
 * @returns the number without a minus sign; undefined if there is none
 */
export function findInexactNumber (text: string): string | undefined {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = skipString(text, at) - 1
    else if (isDigit(code)) {
      const start = at
      while (isNumberChar(text.charCodeAt(at))) at++
      // Numbers of up to three characters are exact, and most numbers are that short.
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
 * Whether a text is a decimal number. In contrast to JSON, it may have a plus sign, leading zeros, and no digit before
 * or after the point. No two parts of the pattern match the same digits, so that matching takes linear time.
 */
export const isDecimal = (text: string): boolean => /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i.test(text)

/** Whether a decimal number is an integer, such as `1.0` and `1e2`. @param text a text that `isDecimal` accepts */
export function isWholeNumber (text: string): boolean {
  const [, whole = '', fraction = '', exponent = '0'] = /^[+-]?(\d*)(?:\.(\d*))?(?:e([+-]?\d+))?$/i.exec(text) ?? []
  const digits = whole + fraction
  let significant = digits.length
  while (significant > 0 && digits[significant - 1] === '0') significant--
  return significant === 0 || whole.length + Number(exponent) >= significant
}

/** Whether a text is a number beyond the range of a double, or an integer that a double cannot represent exactly. */
export const isInexactNumber = (text: string): boolean =>
  isDecimal(text) &&
    (findInexactNumber(text) !== undefined || (isWholeNumber(text) && !Number.isSafeInteger(Number(text))))
