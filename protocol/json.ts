// JSON as text. Parsing and serializing would lose digits (12345678901234567890, 1e400) and duplicate members, so
// values are located in the text, and replaced there. Unless their comments say otherwise, the functions expect text
// that `JSON.parse` accepts; for other text, they terminate with an unspecified result.

/**
 * A member of an object, located in the object's text. `key` is decoded; `keyStart` is the index of the key's opening
 * quote; the value is `text.slice(start, end)`.
 */
export interface Member {
  key: string
  keyStart: number
  start: number
  end: number
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const BRACE = 0x7b

const isSpace = (code: number): boolean => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09

/** Returns the index of the first character from `at` on that is not whitespace; the text's length if there is none. */
export function skipSpace (text: string, at: number): number {
  while (at < text.length && isSpace(text.charCodeAt(at))) at++
  return at
}

/** Returns the index after the closing quote of the string that starts at `at`. */
export function skipString (text: string, at: number): number {
  for (let from = at + 1; ;) {
    const quote = text.indexOf('"', from)
    if (quote === -1) return text.length
    let slash = quote - 1
    while (text.charCodeAt(slash) === BACKSLASH) slash--
    if ((quote - slash) % 2 === 1) return quote + 1
    from = quote + 1
  }
}

/** Returns the index after the value that starts at `at`. */
export function skipValue (text: string, at: number): number {
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

/** Decodes the escapes of a key. @param name the text between the key's quotes */
export function decodeKey (name: string): string {
  if (!name.includes('\\')) return name
  try {
    return JSON.parse(`"${name}"`) as string
  } catch {
    return name
  }
}

/** Lists an object's first `max` members, in order; empty if the text is not an object. */
export function membersOf (text: string, max = Infinity): Member[] {
  const members: Member[] = []
  let at = skipSpace(text, 0)
  if (text.charCodeAt(at) !== BRACE) return members
  at = skipSpace(text, at + 1)
  while (members.length < max && text.charCodeAt(at) === QUOTE) {
    const keyStart = at
    at = skipString(text, at)
    const name = text.slice(keyStart + 1, at - 1)
    const start = skipSpace(text, skipSpace(text, at) + 1)
    const end = skipValue(text, start)
    members.push({ key: decodeKey(name), keyStart, start, end })
    at = skipSpace(text, end)
    if (text.charCodeAt(at) !== COMMA) break
    at = skipSpace(text, at + 1)
  }
  return members
}

/** Counts an object's members, including duplicates; 0 if the text is not an object. */
export function countMembers (text: string): number {
  let count = 0
  let at = skipSpace(text, 0)
  if (text.charCodeAt(at) !== BRACE) return count
  at = skipSpace(text, at + 1)
  while (text.charCodeAt(at) === QUOTE) {
    count++
    at = skipSpace(text, skipValue(text, skipSpace(text, skipSpace(text, skipString(text, at)) + 1)))
    if (text.charCodeAt(at) !== COMMA) break
    at = skipSpace(text, at + 1)
  }
  return count
}

/** Removes duplicate keys from an object's text. The last one is kept, as in `JSON.parse`. */
export function withoutDuplicateMembers (text: string): string {
  const members = new Map(membersOf(text).map(({ key, keyStart, end }) => [key, text.slice(keyStart, end)]))
  return `{${[...members.values()].join()}}`
}

/** Returns the text of a member's value; of duplicates the last one, as in `JSON.parse`; undefined if there is none. */
export function memberOf (text: string, key: string): string | undefined {
  const member = membersOf(text).findLast((each) => each.key === key)
  return member && text.slice(member.start, member.end)
}

/** Parses a member's value; undefined if there is none, or, to limit the cost, if it has more than 16 Ki characters. */
export function parseSmallMember (text: string, key: string): unknown {
  const member = memberOf(text, key)
  return member !== undefined && member.length <= 16 * 1024 ? JSON.parse(member) : undefined
}

/** Returns the texts of an array's first `max` elements; empty if the text is not an array. */
export function elementsOf (text: string, max = Infinity): string[] {
  const elements: string[] = []
  if (max === 0) return elements
  for (const element of eachElement(text)) if (elements.push(element) >= max) break
  return elements
}

/** Yields the texts of an array's elements one by one, since an array may be megabytes long. */
export function * eachElement (text: string): Generator<string> {
  let at = skipSpace(text, 0)
  if (text.charCodeAt(at) !== 0x5b) return
  at = skipSpace(text, at + 1)
  while (at < text.length && text.charCodeAt(at) !== 0x5d) {
    const end = skipValue(text, at)
    yield text.slice(at, end)
    at = skipSpace(text, end)
    if (text.charCodeAt(at) !== COMMA) return
    at = skipSpace(text, at + 1)
  }
}

/**
 * Sets members in the text of an object to new values (JSON texts), or removes them (undefined); all other members keep
 * their bytes. If the object has duplicates of a changed member, one is kept, since parsers differ in which they read.
 * @param defaults members to add if the object lacks them, as JSON text
 */
export function withMembers (
  text: string,
  changes: Readonly<Record<string, string | undefined>>,
  defaults: Readonly<Record<string, string>> = {}
): string {
  let members = ''
  for (const member of membersAfterChanges(text, changes, defaults)) members += members === '' ? member : `,${member}`
  return `{${members}}`
}

/** Yields the members of the object that `withMembers` returns, one by one. Unchanged members are slices of `text`. */
export function * membersAfterChanges (
  text: string,
  changes: Readonly<Record<string, string | undefined>>,
  defaults: Readonly<Record<string, string>> = {}
): Generator<string> {
  const left = Object.keys(changes)
  const missing = Object.keys(defaults).filter((key) => !Object.hasOwn(changes, key))
  for (const { key, keyStart, start, end } of membersOf(text)) {
    if (missing.includes(key)) missing.splice(missing.indexOf(key), 1)
    if (!Object.hasOwn(changes, key)) { yield text.slice(keyStart, end); continue }
    const at = left.indexOf(key)
    if (at === -1) continue
    left.splice(at, 1)
    if (changes[key] !== undefined) yield `${text.slice(keyStart, start)}${changes[key]}`
  }
  for (const key of left) {
    if (changes[key] !== undefined) yield `${JSON.stringify(key)}:${changes[key]}`
  }
  for (const key of missing) yield `${JSON.stringify(key)}:${defaults[key]}`
}

/** Appends a member to an object that does not have it yet. @param value as JSON text */
export function appendMember (text: string, key: string, value: string): string {
  const members = text.slice(0, text.lastIndexOf('}'))
  return `${members}${isBlank(members, members.indexOf('{') + 1) ? '' : ','}${JSON.stringify(key)}:${value}}`
}

const isBlank = (text: string, from: number): boolean => skipSpace(text, from) === text.length

/** Whether objects and arrays are nested deeper than `limit` levels. */
export function isDeeperThan (text: string, limit: number): boolean {
  // Each level takes at least two characters, one of which opens it.
  return text.length > 2 * limit && opensMoreThan(text, limit) && depthOf(text) > limit
}

/**
 * Whether the text has more than `limit` opening brackets, including those in strings. A fast check: most texts have
 * fewer.
 */
function opensMoreThan (text: string, limit: number): boolean {
  let left = limit
  for (const bracket of '{[') {
    for (let at = text.indexOf(bracket); at !== -1; at = text.indexOf(bracket, at + 1)) if (--left < 0) return true
  }
  return false
}

function depthOf (text: string): number {
  let depth = 0
  let deepest = 0
  for (let at = 0; at < text.length;) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) { at = skipString(text, at); continue }
    if (code === 0x7b || code === 0x5b) deepest = Math.max(deepest, ++depth)
    else if (code === 0x7d || code === 0x5d) depth--
    at++
  }
  return deepest
}

/** Puts a JSON text on one line. In JSON, line breaks occur between tokens only, where a space is equivalent. */
export const toOneLine = (text: string): string =>
  text.includes('\n') || text.includes('\r') ? text.replace(/[\r\n]/g, ' ') : text

/** Whether a value is a JSON object: neither null nor an array. */
export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * Writes JSON with sorted members and without spaces, as in RFC 8785, so that objects that differ only in the order of
 * their members become the same text.
 */
export function canonicalJson (value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`
  if (!isObject(value)) return JSON.stringify(value)
  const names = Object.keys(value).sort()
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonicalJson(value[name])}`).join()}}`
}

/** Parses a JSON text; undefined if it is not JSON. */
export function parseIfJson (text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Parses the text of a JSON object; undefined if it is anything else. */
export function parseJsonObject (text: string): Record<string, unknown> | undefined {
  const value = parseIfJson(text)
  return isObject(value) ? value : undefined
}

/**
 * Removes members that are `null` or `""`, which many programs write for absent values. Use it for OAuth documents
 * (metadata, registrations, token responses), where neither is a valid value.
 */
export const withoutEmptyMembers = (document: object): Record<string, unknown> =>
  Object.fromEntries(Object.entries(document).filter(([, value]) => value !== null && value !== ''))
