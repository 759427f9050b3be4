// Literal values in a query, such as a file name, an address or a quotation. The kind of a literal says more about the
// wanted tool than its words.

/**
 * A piece of a query. `weight`: the weight of its words. `hint`: English words for the kind of a literal; undefined for
 * plain text.
 */
interface Piece { readonly text: string, readonly weight: number, readonly hint?: string }

interface Kind {
  readonly pattern: RegExp
  readonly weight: number
  readonly hint?: string
  /** A case-sensitive pattern that the value must match as well; `pattern` ignores case. */
  readonly only?: RegExp
}

/** The kinds of literals. If several match at one position, the first of them applies. */
const kinds: readonly Kind[] = [
  { pattern: /\bselect\s[^;]{1,300}\sfrom\s/, weight: 0.3, hint: 'run sql query' },
  { pattern: /["“„«][^"“”„«»]{1,200}["”“»]/, weight: 0.4 },
  { pattern: /\bhttps?:\/\/[^\s"'<>]{1,500}/, weight: 0.25, hint: 'url web page' },
  { pattern: /[\w.+-]{1,64}@[\w-]{1,63}\.[\w.-]{1,63}/, weight: 0.25, hint: 'email' },
  { pattern: /\b[\w-]{1,64}\.(?:png|jpe?g|gif|webp|svg|heic|tiff?|bmp)\b/, weight: 0.3, hint: 'file image' },
  { pattern: /\b[\w-]{1,64}\.(?:mp3|wav|ogg|flac|m4a)\b/, weight: 0.3, hint: 'file audio' },
  { pattern: /\b[\w-]{1,64}\.(?:mp4|mov|avi|mkv|webm)\b/, weight: 0.3, hint: 'file video' },
  { pattern: /\b[\w-]{1,64}\.(?:xlsx?|csv|tsv|ods)\b/, weight: 0.3, hint: 'file spreadsheet' },
  {
    pattern: /\b[\w-]{1,64}\.(?:txt|md|pdf|docx?|pptx?|json|ya?ml|toml|xml|html?|css|log|zip|gz|tar|sql|ini|conf|env)\b/,
    weight: 0.3,
    hint: 'file'
  },
  { pattern: /\b[\w-]{1,64}\.(?:py|tsx?|jsx?|go|rs|java|rb|php|c|cpp|h|sh)\b/, weight: 0.3, hint: 'file' },
  {
    pattern: /\b[a-z\d-]{1,63}\.(?:com|org|net|io|dev|app|edu|gov|info|shop|site|eu|de|fr|es|it|nl|uk|ch|at)\b/,
    weight: 0.6,
    hint: 'url web site'
  },
  { pattern: /(?<![\w/])(?:~|\.{1,2})?\/[\w.-]{1,100}(?:\/[\w.-]{0,100}){1,20}/, weight: 0.3, hint: 'file path' },
  { pattern: /\b(?:localhost|\d{1,3}(?:\.\d{1,3}){3}):\d{2,5}\b/, weight: 0.5, hint: 'port' },
  { pattern: /\b\d{1,3}(?:\.\d{1,3}){3}\b/, weight: 0.3, hint: 'ip host' },
  {
    pattern: /-?\d{1,3}\.\d{2,10}°?,? {0,2}-?\d{1,3}\.\d{2,10}/,
    weight: 0.2,
    hint: 'location coordinates latitude longitude'
  },
  { pattern: /\b\d{3,4} ?[x×] ?\d{3,4}\b/, weight: 0.3, hint: 'resize size width height' },
  {
    pattern: /\b(?:ctrl|cmd|alt|shift|option|command) ?\+ ?\w{1,10}(?: ?\+ ?\w{1,10})?/,
    weight: 0.3,
    hint: 'press key keyboard'
  },
  { pattern: /(?<!\w)#(?=[a-f]*\d)[a-f\d]{6}\b/, weight: 0.3, hint: 'color' },
  { pattern: /(?<!\w)#\d{1,6}\b/, weight: 0.3, hint: 'issue' },
  { pattern: /(?<!\w)#[a-z][\w-]{1,60}/, weight: 0.3, hint: 'channel' },
  { pattern: /(?<!\w)@[a-z][\w-]{1,60}/, weight: 0.3, hint: 'user' },
  { pattern: /\b[a-z]{2,10}-\d{1,6}\b/, weight: 0.3, hint: 'issue', only: /^[A-Z]{2,10}-\d+$/ },
  { pattern: /\b[a-z]{2,30}(?:_[a-z\d]{1,30}){1,6}\b/, weight: 0.4, hint: 'environment variable', only: /^[A-Z_\d]+$/ },
  {
    pattern: /[$€£¥] ?\d[\d.,]{0,12}|\b\d[\d.,]{0,12} ?(?:euros?|dollars?|bucks|pounds|usd|eur|gbp|chf)\b/,
    weight: 0.3,
    hint: 'amount'
  },
  { pattern: /\p{Extended_Pictographic}/u, weight: 0.3, hint: 'emoji reaction' },
  {
    pattern: /\b(?:at )?(?:[01]?\d|2[0-3])(?::[0-5]\d(?: ?[ap]m)?| ?[ap]m| o'clock)\b/,
    weight: 0.2,
    hint: 'calendar event'
  },
  { pattern: /\b(?:next|last|this|every|until|by|on) (?:mon|tues|wednes|thurs|fri|satur|sun)day\b/, weight: 0.3 },
  { pattern: /\b(?=[a-z]*\d)(?=\d*[a-z])[a-z\d]{6,64}\b/, weight: 0.3 }
]
const anyLiteral = new RegExp(kinds.map(({ pattern }) => `(${pattern.source})`).join('|'), 'giu')

/** Splits a query into plain text and literals, in order. */
export function splitAtLiterals (text: string): Piece[] {
  const pieces: Piece[] = []
  let from = 0
  for (const match of text.matchAll(anyLiteral)) {
    const kind = kinds[match.slice(1).findIndex((group) => group !== undefined)]
    if (!kind || kind.only?.test(match[0]) === false) continue
    if (match.index > from) pieces.push({ text: text.slice(from, match.index), weight: 1 })
    pieces.push({ text: match[0], weight: kind.weight, hint: kind.hint })
    from = match.index + match[0].length
  }
  if (from < text.length) pieces.push({ text: text.slice(from), weight: 1 })
  return pieces
}
