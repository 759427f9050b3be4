/** A range of a text, `text.slice(start, end)`, in which something secret stands, and what is shown in its place. */
export interface Secret { readonly start: number, readonly end: number, readonly shown: string }

/** An encoding in which a text may hold a secret: each escape stands for one character. */
interface Encoding { readonly mark: string, readonly escape: RegExp, readonly decode: (escape: string) => string }

const short: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }
const json: Encoding = {
  mark: '\\',
  escape: /\\(?:u[\da-fA-F]{4}|["\\/bfnrt])/g,
  decode: (escape) => {
    const character = escape.charAt(1)
    return character === 'u' ? String.fromCharCode(Number.parseInt(escape.slice(2), 16)) : short[character] ?? character
  }
}
const percent: Encoding = {
  mark: '%',
  escape: /%[\da-fA-F]{2}/g,
  decode: (escape) => String.fromCharCode(Number.parseInt(escape.slice(1), 16))
}
/** How often encodings are undone: a result may hold JSON in a text in JSON, with an address in it. */
const maxDepth = 3

/**
 * Masks what `find` finds in a text, in whatever encoding it stands there: as it is, as JSON strings write it, or
 * percent-encoded. All else keeps its bytes.
 */
export function maskReadings (text: string, find: (reading: string) => Iterable<Secret>): string {
  const parts: string[] = []
  let from = 0
  for (const { start, end, shown } of merged(foundIn(text, find, maxDepth))) {
    parts.push(text.slice(from, start), shown)
    from = end
  }
  return from === 0 ? text : parts.join('') + text.slice(from)
}

function foundIn (text: string, find: (reading: string) => Iterable<Secret>, depth: number): Secret[] {
  const found = [...find(text)]
  if (depth === 0) return found
  for (const { mark, escape, decode } of [json, percent]) {
    if (!text.includes(mark)) continue
    const reading = text.replace(escape, decode)
    if (reading !== text) found.push(...encoded(merged(foundIn(reading, find, depth - 1)), text, escape))
  }
  return found
}

/** In order, those that overlap as one. */
function merged (found: readonly Secret[]): Secret[] {
  const whole: Secret[] = []
  for (const next of [...found].sort((one, other) => one.start - other.start || other.end - one.end)) {
    const last = whole.at(-1)
    if (last === undefined || next.start >= last.end) whole.push(next)
    else if (next.end > last.end) whole[whole.length - 1] = { ...last, end: next.end }
  }
  return whole
}

/**
 * Where secrets that were found in a reading stand in the text that it was decoded from.
 * @param found in order, none overlapping
 */
function encoded (found: readonly Secret[], text: string, escape: RegExp): Secret[] {
  if (found.length === 0) return []
  const escapes = text.matchAll(escape)
  let next = escapes.next()
  /** By how much the text is longer than the reading up to here. */
  let longer = 0
  const placeOf = (place: number): number => {
    while (next.done !== true && next.value.index - longer < place) {
      longer += next.value[0].length - 1
      next = escapes.next()
    }
    return place + longer
  }
  return found.map(({ start, end, shown }) => ({ start: placeOf(start), end: placeOf(end), shown }))
}
