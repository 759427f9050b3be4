/** Matches control, private-use and invisible characters, and those that reorder text, except line ends and tabs. */
const hidden = /(?![\t\n\r])[\p{Cc}\p{Cf}\p{Co}\p{Default_Ignorable_Code_Point}]/gu
/** Matches emoji of flags, which contain tag characters. */
const flag = /\u{1f3f4}[\u{e0061}-\u{e007a}\u{e0030}-\u{e0039}]{1,8}\u{e007f}/gu
/** Matches variation selectors and joiners within emoji. */
const emoji = new RegExp([
  '(?<=[\\p{Emoji}\\u20e3])[\\ufe0e\\ufe0f]',
  '(?<=[\\p{Extended_Pictographic}\\p{Emoji_Modifier}\\ufe0f])\\u200d(?=\\p{Extended_Pictographic})'
].join('|'), 'gu')
/** Matches joiners and directional marks after letters of scripts that use them. */
const joined = new RegExp(`(?<=[${[
  'Arab', 'Syrc', 'Mong', 'Deva', 'Beng', 'Guru', 'Gujr', 'Orya',
  'Taml', 'Telu', 'Knda', 'Mlym', 'Sinh', 'Khmr', 'Hebr'
].map((script) => `\\p{sc=${script}}`).join('')}])[\\u200c-\\u200f]`, 'gu')
/** Matches soft hyphens, which copied text often contains. */
const softHyphen = /\u00ad/g
/** Matches a byte order mark at the start of a text. */
const mark = /^\ufeff/

/** Removes hidden characters in places where ordinary texts contain them. */
const withoutOrdinary = (text: string): string =>
  text.replace(mark, '').replace(flag, '').replace(emoji, '').replace(joined, '').replace(softHyphen, '')

/** Names for ranges of hidden characters. The first range that contains a character applies. */
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
 * Returns a text in the form in which phrases are searched: as a reader sees it, without hidden characters, on one line
 * and in lower case.
 */
export const toSearchableText = (text: string): string =>
  text.replace(hidden, '').normalize('NFKC').replace(/\s+/g, ' ').toLowerCase()
