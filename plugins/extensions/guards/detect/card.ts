import { matchesOf, type FindRanges } from './range.ts'

/** The pattern of the separator between groups of digits: one or two spaces, marks or invisible characters. */
const gap = '([\\s./_+\\u200b-\\u200d\\u2060-]{1,2})'
/** Matches digits without separators, or in the groups in which they are printed on cards. */
const cardPattern = new RegExp('(?<![A-Za-z0-9]|\\d[.,])(?:' + [
  '\\d{13,19}',
  `\\d{4}${gap}\\d{4}\\1\\d{4}\\1\\d{4}(?:\\1\\d{1,3})?`,
  `\\d{4}${gap}\\d{6}\\2\\d{4,5}`
].join('|') + ')(?![A-Za-z0-9]|[.,]\\d)', 'g')

/** For each card scheme: the leading digits of its card numbers, and their possible lengths. */
const schemes: ReadonlyArray<readonly [RegExp, readonly number[]]> = [
  [/^4/, [13, 16, 19]],
  [/^(?:5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720)/, [16]],
  [/^3[47]/, [15]],
  [/^(?:6011|64[4-9]|65)/, [16, 17, 18, 19]],
  [/^3(?:0[0-5]|[689])/, [14, 16, 17, 18, 19]],
  [/^35(?:2[89]|[3-8])/, [16, 17, 18, 19]],
  [/^(?:62|81)/, [16, 17, 18, 19]],
  [/^(?:50|5[6-9]|6)/, [16, 17, 18, 19]]
]

/** Whether digits pass the Luhn check (ISO/IEC 7812-1). */
function hasCheckDigit (digits: string): boolean {
  let sum = 0
  for (let at = digits.length - 1, isDoubled = false; at >= 0; at--, isDoubled = !isDoubled) {
    const digit = Number(digits.charAt(at)) * (isDoubled ? 2 : 1)
    sum += digit > 9 ? digit - 9 : digit
  }
  return sum % 10 === 0
}

/** Whether digits can be a payment card number: the leading digits, the length and the check digit are valid. */
export const isCard = (digits: string): boolean =>
  /^\d{13,19}$/.test(digits) && !/^(\d)\1*$/.test(digits) && hasCheckDigit(digits) &&
  schemes.some(([beginning, lengths]) => beginning.test(digits) && lengths.includes(digits.length))

/** Finds payment card numbers. */
export const findCards: FindRanges = function * (text) {
  for (const { 0: found, index: start } of matchesOf(cardPattern, text)) {
    const firstGap = found.search(/\D/)
    if (isCard(found.replace(/\D/g, ''))) yield { start, end: start + found.length }
    // Digits before a card number may look like its first group, so the search continues at the second group.
    else if (firstGap !== -1) cardPattern.lastIndex = start + firstGap + 1
  }
}
