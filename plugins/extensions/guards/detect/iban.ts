import { matchesOf, type FindRanges } from './range.ts'

/** The lengths of IBANs by country code (registry of ISO 13616). */
const lengths = new Map(Object.entries({
  15: 'NO',
  16: 'BE BI',
  18: 'DK FI FK FO GL NL SD SM',
  19: 'MK SI',
  20: 'AT BA EE KZ LT LU MN XK',
  21: 'CH HR LI LV',
  22: 'BG BH CR DE GB GE IE ME RS VA',
  23: 'AE GI IL IQ OM SO TL',
  24: 'AD CZ ES MD PK RO SA SE SK TN VG',
  25: 'LY PT ST',
  26: 'IS TR',
  27: 'BF CF CG CI CM DJ FR GA GR IT KM MC MR TD SN',
  28: 'AL AZ BJ BY CY DO DZ GT GW HN HU LB MA MG ML MZ NE NI PL SV TG',
  29: 'BR EG PS QA UA',
  30: 'JO KW MU YE',
  31: 'MT SC',
  32: 'LC',
  33: 'RU'
}).flatMap(([length, countries]) => countries.split(' ').map((country) => [country, Number(length)] as const)))

/** Matches the country code and the check digits at the start of an IBAN. */
const ibanStart = /(?<![A-Za-z0-9])[A-Za-z]{2}[ ]?\d{2}/g

/**
 * Whether the check digits are right: with the first four characters moved to the end and letters replaced by numbers
 * from 10 on, the number modulo 97 must be 1.
 */
function hasCheckDigits (iban: string): boolean {
  let rest = 0
  for (const character of iban.slice(4) + iban.slice(0, 4)) {
    const value = Number.parseInt(character, 36)
    rest = (rest * (value > 9 ? 100 : 10) + value) % 97
  }
  return rest === 1
}

/**
 * Returns the end of the next `length` letters and digits, between which there may be single spaces and hyphens;
 * undefined if other characters interrupt them.
 */
function endOf (text: string, start: number, length: number): number | undefined {
  let at = start
  for (let left = length; left > 0; at++) {
    if (/[A-Za-z0-9]/.test(text.charAt(at))) left--
    else if (!/[ \u00a0-]/.test(text.charAt(at)) || !/[A-Za-z0-9]/.test(text.charAt(at + 1))) return undefined
  }
  return at
}

/** Finds International Bank Account Numbers. */
export const findIbans: FindRanges = function * (text) {
  for (const { index: start } of matchesOf(ibanStart, text)) {
    const length = lengths.get(text.slice(start, start + 2).toUpperCase())
    const end = length === undefined ? undefined : endOf(text, start, length)
    if (end === undefined || /[A-Za-z0-9]/.test(text.charAt(end))) continue
    if (hasCheckDigits(text.slice(start, end).replace(/[^A-Za-z0-9]/g, ''))) yield { start, end }
  }
}
