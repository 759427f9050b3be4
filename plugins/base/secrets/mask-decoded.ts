/** A range of a text, `text.slice(start, end)`, that contains a secret, and the text to show instead. */
export interface SecretRange { readonly start: number, readonly end: number, readonly shown: string }

/** An encoding in which a secret may occur. An escape begins with `mark`, and stands for one character. */
interface Encoding { readonly mark: string, readonly escape: RegExp, readonly decode: (escape: string) => string }

const shortEscapes: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }
const json: Encoding = {
  mark: '\\',
  escape: /\\(?:u[\da-fA-F]{4}|["\\/bfnrt])/g,
  decode: (escape) => {
    const character = escape.charAt(1)
    return character === 'u'
      ? String.fromCharCode(Number.parseInt(escape.slice(2), 16))
      : shortEscapes[character] ?? character
  }
}
const percent: Encoding = {
  mark: '%',
  escape: /%[\da-fA-F]{2}/g,
  decode: (escape) => String.fromCharCode(Number.parseInt(escape.slice(1), 16))
}
/** Max number of nested encodings to decode: a result may contain a URL in JSON within a JSON string. */
const maxDepth = 3

/**
 * Masks the secrets in a text, including secrets that are written with JSON escapes or percent-encoding. The rest of
 * the text is unchanged.
 * @param find returns the ranges of secrets in a text; it is called with the text, and with decoded forms of the text
 */
export function maskFoundSecrets (text: string, find: (decoded: string) => Iterable<SecretRange>): string {
  const parts: string[] = []
  let from = 0
  for (const { start, end, shown } of mergeRanges(findSecrets(text, find, maxDepth))) {
    parts.push(text.slice(from, start), shown)
    from = end
  }
  return from === 0 ? text : parts.join('') + text.slice(from)
}

function findSecrets (text: string, find: (decoded: string) => Iterable<SecretRange>, depth: number): SecretRange[] {
  const found = [...find(text)]
  if (depth === 0) return found
  for (const { mark, escape, decode } of [json, percent]) {
    if (!text.includes(mark)) continue
    const decoded = text.replace(escape, decode)
    if (decoded !== text) {
      found.push(...toEncodedRanges(mergeRanges(findSecrets(decoded, find, depth - 1)), text, escape))
    }
  }
  return found
}

/** Sorts the ranges, and merges those that overlap. */
function mergeRanges (found: readonly SecretRange[]): SecretRange[] {
  const whole: SecretRange[] = []
  for (const next of [...found].sort((one, other) => one.start - other.start || other.end - one.end)) {
    const last = whole.at(-1)
    if (last === undefined || next.start >= last.end) whole.push(next)
    else if (next.end > last.end) whole[whole.length - 1] = { ...last, end: next.end }
  }
  return whole
}

/** Maps ranges of secrets in a decoded text to ranges of the encoded text. @param found sorted, without overlaps */
function toEncodedRanges (found: readonly SecretRange[], text: string, escape: RegExp): SecretRange[] {
  if (found.length === 0) return []
  const escapes = text.matchAll(escape)
  let next = escapes.next()
  /** By how much the encoded text is longer than the decoded one, up to the current position. */
  let offset = 0
  const toEncodedIndex = (place: number): number => {
    while (next.done !== true && next.value.index - offset < place) {
      offset += next.value[0].length - 1
      next = escapes.next()
    }
    return place + offset
  }
  return found.map(({ start, end, shown }) => ({ start: toEncodedIndex(start), end: toEncodedIndex(end), shown }))
}
