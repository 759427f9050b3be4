import { matchesOf, type FindRanges } from './range.ts'

/** A format of phone numbers, with the min and max number of digits. */
interface Form { readonly pattern: string, readonly min: number, readonly max: number }

const gap = '[ \\u00a0./()-]{0,3}'

/** Five numbers of two digits. Within a longer row, or between two bytes of a hex dump, they are no phone number. */
const pairs = '0[1-9](?:[ .-]\\d{2}){4}'
const hexByte = '\\b[\\da-fA-F]{2}\\b'

const forms: readonly Form[] = [
  // International (E.164), or with 00 in place of the plus sign and a separator after the country code.
  { pattern: `\\+${gap}[1-9](?:${gap}\\d){6,14}`, min: 7, max: 15 },
  { pattern: `00[1-9]\\d{0,2}[ /-](?:${gap}\\d){5,12}`, min: 9, max: 17 },
  // North America.
  { pattern: '(?:1[ .-])?(?:\\([2-9]\\d\\d\\) ?|[2-9]\\d\\d[ .-])[2-9]\\d\\d[ .-]\\d{4}', min: 10, max: 11 },
  // National, with the trunk prefix 0 and an area code.
  { pattern: '\\(?0[1-9]\\d{1,4}\\)?[ /-]{1,3}\\d{3,8}(?:[ -]\\d{2,5}){0,3}', min: 9, max: 12 },
  { pattern: '0[1-9]\\d{1,3}[ /-]\\d{2}(?:[ -]\\d{2}){3}', min: 11, max: 13 },
  // National, with an area code of one digit. A month and a year (`01 2026`) are none.
  { pattern: '0[1-9][ -](?!(?:19|20)\\d\\d[ -])\\d{3,4}(?:[ -]\\d{2,4}){1,2}', min: 9, max: 10 },
  { pattern: `(?<!\\d[ .-])(?!(?<=${hexByte}[ .-])${pairs}[ .-]${hexByte})${pairs}(?![ .-]\\d)`, min: 10, max: 10 }
]

const patterns = forms.map(({ pattern }) => `(${pattern})`).join('|')
const phonePattern = new RegExp(`(?<![\\w.+/-])(?:${patterns})(?!\\w|[.-]\\d)`, 'g')

/** Finds phone numbers: international ones, and national ones that are written with separators. */
export const findPhones: FindRanges = function * (text) {
  for (const match of matchesOf(phonePattern, text)) {
    const found = match[0]
    const form = forms[match.slice(1).findIndex((each) => each !== undefined)]
    const digits = found.replace(/\D/g, '').length
    if (form && digits >= form.min && digits <= form.max) yield { start: match.index, end: match.index + found.length }
  }
}
