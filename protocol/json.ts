// JSON kept as text. A relay must not re-serialise what it does not change: `JSON.parse` turns 12345678901234567890 and 1e400
// into something else and re-orders nothing but loses much. So values are *found* in the text and replaced in place.
// All functions expect text that `JSON.parse` has accepted; on other text their result is unspecified, but they return.

/** One member of an object's text: the decoded key, and where its value stands: `text.slice(start, end)`. */
export interface Member { key: string, keyStart: number, start: number, end: number }

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c

const isSpace = (code: number): boolean => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09

function skipSpace (text: string, at: number): number {
  while (at < text.length && isSpace(text.charCodeAt(at))) at++
  return at
}

/** From an opening quote to just past the closing one. */
function skipString (text: string, at: number): number {
  for (let from = at + 1; ;) {
    const quote = text.indexOf('"', from)
    if (quote === -1) return text.length
    let slash = quote - 1
    while (text.charCodeAt(slash) === BACKSLASH) slash--
    if ((quote - slash) % 2 === 1) return quote + 1
    from = quote + 1
  }
}

/** From the first character of a value to just past its last. */
function skipValue (text: string, at: number): number {
  const first = text.charCodeAt(at)
  if (first === QUOTE) return skipString(text, at)
  if (first !== 0x7b && first !== 0x5b) {
    while (at < text.length) {
      const code = text.charCodeAt(at)
      if (code === COMMA || code === 0x7d || code === 0x5d || isSpace(code)) break
      at++
    }
    return at
  }
  let depth = 0
  while (at < text.length) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) { at = skipString(text, at); continue }
    at++
    if (code === 0x7b || code === 0x5b) depth++
    else if ((code === 0x7d || code === 0x5d) && --depth === 0) return at
  }
  return at
}

/** A key with its escapes resolved. */
function decoded (name: string): string {
  try {
    return JSON.parse(`"${name}"`) as string
  } catch {
    return name
  }
}

/** The members of the object whose text this is, in order; none when the text is no object. */
export function membersOf (text: string): Member[] {
  const members: Member[] = []
  let at = skipSpace(text, 0)
  if (text.charCodeAt(at) !== 0x7b) return members
  at = skipSpace(text, at + 1)
  while (text.charCodeAt(at) === QUOTE) {
    const keyStart = at
    at = skipString(text, at)
    const name = text.slice(keyStart + 1, at - 1)
    const key = name.includes('\\') ? decoded(name) : name
    const start = skipSpace(text, skipSpace(text, at) + 1)
    const end = skipValue(text, start)
    members.push({ key, keyStart, start, end })
    at = skipSpace(text, end)
    if (text.charCodeAt(at) !== COMMA) break
    at = skipSpace(text, at + 1)
  }
  return members
}

/** The text of one member's value; the last one where a key stands twice, as `JSON.parse` has it. */
export function memberOf (text: string, key: string): string | undefined {
  const member = membersOf(text).findLast((each) => each.key === key)
  return member && text.slice(member.start, member.end)
}

/** The texts of an array's elements, in order; none when the text is no array. */
export function elementsOf (text: string): string[] {
  const elements: string[] = []
  let at = skipSpace(text, 0)
  if (text.charCodeAt(at) !== 0x5b) return elements
  at = skipSpace(text, at + 1)
  while (at < text.length && text.charCodeAt(at) !== 0x5d) {
    const end = skipValue(text, at)
    elements.push(text.slice(at, end))
    at = skipSpace(text, end)
    if (text.charCodeAt(at) !== COMMA) break
    at = skipSpace(text, at + 1)
  }
  return elements
}

/**
 * The object's text with some members set to other values (given as JSON text), or removed (undefined); all else stays as it
 * stands, to the byte. A changed key that stands more than once is left standing once: two parsers must not read two names.
 */
export function withMembers (text: string, changes: Readonly<Record<string, string | undefined>>): string {
  const parts: string[] = []
  const left = new Set(Object.keys(changes))
  for (const { key, keyStart, start, end } of membersOf(text)) {
    if (!Object.hasOwn(changes, key)) parts.push(text.slice(keyStart, end))
    else if (left.delete(key) && changes[key] !== undefined) parts.push(`${text.slice(keyStart, start)}${changes[key]}`)
  }
  for (const key of left) {
    if (changes[key] !== undefined) parts.push(`${JSON.stringify(key)}:${changes[key]}`)
  }
  return `{${parts.join(',')}}`
}

/** True when more than `limit` objects and arrays are open at once somewhere. */
export function isDeeperThan (text: string, limit: number): boolean {
  // Each level takes two characters.
  return text.length > 2 * limit && depthOf(text) > limit
}

function depthOf (text: string): number {
  let depth = 0
  let deepest = 0
  for (let at = 0; at < text.length;) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) { at = skipString(text, at); continue }
    if (code === 0x7b || code === 0x5b) { if (++depth > deepest) deepest = depth } else if (code === 0x7d || code === 0x5d) depth--
    at++
  }
  return deepest
}

/** The same JSON on one line: a line break can only stand between tokens, where a space says the same. */
export const oneLine = (text: string): string => text.includes('\n') || text.includes('\r') ? text.replace(/[\r\n]/g, ' ') : text

/** True for what JSON calls an object. */
export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
