/** Characters that are invisible, or that reorder the display of others, except line ends and tabs. */
const hidden = /(?![\t\n\r])[\p{Cc}\p{Cf}\p{Co}\p{Default_Ignorable_Code_Point}]/gu
/** Emoji of flags, which contain tag characters. */
const flag = /\u{1f3f4}[\u{e0061}-\u{e007a}\u{e0030}-\u{e0039}]{1,8}\u{e007f}/gu
/** Variation selectors and joiners within emoji. */
const emoji = new RegExp([
  '(?<=[\\p{Emoji}\\u20e3])[\\ufe0e\\ufe0f]',
  '(?<=[\\p{Extended_Pictographic}\\p{Emoji_Modifier}\\ufe0f])\\u200d(?=\\p{Extended_Pictographic})'
].join('|'), 'gu')
/** Joiners and directional marks after letters of scripts that use them. */
const joined = new RegExp(`(?<=[${[
  'Arab', 'Syrc', 'Mong', 'Deva', 'Beng', 'Guru', 'Gujr', 'Orya',
  'Taml', 'Telu', 'Knda', 'Mlym', 'Sinh', 'Khmr', 'Hebr'
].map((script) => `\\p{sc=${script}}`).join('')}])[\\u200c-\\u200f]`, 'gu')
/** Soft hyphens, which often come with copied text. */
const softHyphen = /\u00ad/g
/** A byte order mark at the start. */
const mark = /^\ufeff/

/** Removes the hidden characters that ordinary texts contain. */
const withoutOrdinary = (text: string): string =>
  text.replace(mark, '').replace(flag, '').replace(emoji, '').replace(joined, '').replace(softHyphen, '')

const ranges: ReadonlyArray<readonly [first: number, last: number, name: string]> = [
  [0xe0000, 0xe007f, 'tags'],
  [0x202a, 0x202e, 'bidirectional controls'],
  [0x2066, 0x2069, 'bidirectional controls'],
  [0x200e, 0x200f, 'bidirectional controls'],
  [0x200b, 0x200d, 'zero-width characters'],
  [0x2060, 0x2064, 'zero-width characters'],
  [0xfeff, 0xfeff, 'zero-width characters'],
  [0xfe00, 0xfe0f, 'variation selectors'],
  [0xe0100, 0xe01ef, 'variation selectors'],
  [0xe000, 0xf8ff, 'private-use characters'],
  [0xf0000, 0x10fffd, 'private-use characters'],
  [0, 0x1f, 'control characters']
]

const rangeOf = (point: number): string =>
  ranges.find(([first, last]) => point >= first && point <= last)?.[2] ?? 'invisible characters'

/** Returns a clause about the hidden characters of a text; undefined if there are none. */
export function describeHiddenUnicode (text: string): string | undefined {
  const found = withoutOrdinary(text).match(hidden)
  if (found === null) return undefined
  const kinds = new Set(found.map((each) => rangeOf(each.codePointAt(0) ?? 0)))
  const first = (found[0].codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')
  return `hidden Unicode: ${[...kinds].join(', ')} (${found.length}, the first is U+${first})`
}

/**
 * Returns the text as a reader sees it, for the search for phrases: without hidden characters, on one line, in lower
 * case.
 */
export const toSearchableText = (text: string): string =>
  text.replace(hidden, '').normalize('NFKC').replace(/\s+/g, ' ').toLowerCase()
