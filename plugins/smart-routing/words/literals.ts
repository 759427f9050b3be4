// Values within a question (a file's name, an address, a quotation) say what kind of thing it is about; their words say little.

/** A piece of a question. `weight`: what its words count. `hint`: the kind of thing it is, in English words. */
export interface Piece { readonly text: string, readonly weight: number, readonly hint?: string }

const kinds: Array<{ pattern: RegExp, weight: number, hint?: string }> = [
  { pattern: /["“„«][^"“”„«»]{1,200}["”“»]/, weight: 0.4 },
  { pattern: /\bhttps?:\/\/[^\s"'<>]{1,500}/, weight: 0.25, hint: 'url web page' },
  { pattern: /[\w.+-]{1,64}@[\w-]{1,63}\.[\w.-]{1,63}/, weight: 0.25, hint: 'email' },
  { pattern: /\b[\w-]{1,64}\.(?:txt|md|pdf|docx?|xlsx?|csv|json|ya?ml|toml|xml|html?|log|zip|png|jpe?g|svg|py|ts|js|sh|ini|conf)\b/, weight: 0.3, hint: 'file' },
  { pattern: /(?<![\w/])(?:~|\.{1,2})?\/[\w.-]{1,100}(?:\/[\w.-]{0,100}){1,20}/, weight: 0.3, hint: 'file path' },
  { pattern: /\b(?:localhost|\d{1,3}(?:\.\d{1,3}){3}):\d{2,5}\b/, weight: 0.5, hint: 'port' },
  { pattern: /(?<!\w)#[a-z][\w-]{1,60}/i, weight: 0.3, hint: 'channel' },
  { pattern: /(?<!\w)@[a-z][\w-]{1,60}/i, weight: 0.3, hint: 'user' },
  { pattern: /\b(?:at )?(?:[01]?\d|2[0-3])(?::[0-5]\d(?: ?[ap]m)?| ?[ap]m| o'clock)\b|\bat (?:[1-9]|1\d|2[0-3])\b(?![.,:]?\d)/, weight: 0.2, hint: 'calendar event' },
  { pattern: /\b(?:next|last|this|every|until|by|coming) (?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|week|month|year)\b/, weight: 0.3 },
  { pattern: /\b(?=[a-z]*\d)(?=\d*[a-z])[a-z\d]{6,64}\b/i, weight: 0.3 }
]
const any = new RegExp(kinds.map(({ pattern }) => `(${pattern.source})`).join('|'), 'giu')

/** A question as what is said and what is quoted, in order. */
export function piecesOf (text: string): Piece[] {
  const pieces: Piece[] = []
  let from = 0
  for (const match of text.matchAll(any)) {
    const kind = kinds[match.slice(1).findIndex((group) => group !== undefined)]
    if (!kind) continue
    if (match.index > from) pieces.push({ text: text.slice(from, match.index), weight: 1 })
    pieces.push({ text: match[0], weight: kind.weight, hint: kind.hint })
    from = match.index + match[0].length
  }
  if (from < text.length) pieces.push({ text: text.slice(from), weight: 1 })
  return pieces
}
