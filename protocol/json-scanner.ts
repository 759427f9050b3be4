// Validates JSON text without creating values, in one pass, with memory for the requested members only. `JSON.parse`
// may need fifty times a text's size in memory, and seconds for 16 MiB of empty arrays.
import { decodeKey, skipSpace, type Member } from './json.ts'

/** Thrown for JSON that is nested too deeply. */
export class JsonTooDeep extends Error {}

/** What `scanJson` finds in a text. */
interface Scan {
  readonly kind: 'object' | 'array' | 'other'
  /** The requested members of an object; or the first elements of an array, with an empty key each. */
  readonly members: readonly Member[]
  /** The number of members or elements of the outermost object or array. */
  readonly size: number
  /** Whether the text contains a `null` or an empty array. */
  readonly hasNullOrEmptyArray: boolean
  /** The number of all values, at any depth. */
  readonly values: number
  /** The number of members of the largest object. */
  readonly largestObject: number
}

interface ScanOptions {
  readonly maxDepth: number
  /** Selects the members of the outermost object to list. Default: none. */
  readonly isWanted?: (key: string) => boolean
  /** Max elements of the outermost array to list. Default: 0. */
  readonly maxElements?: number
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const COLON = 0x3a
const SPACE = 0x20
const escapes = new Set(Array.from('"\\/bfnrt', (character) => character.charCodeAt(0)))

const isHex = (code: number): boolean =>
  (code >= 0x30 && code <= 0x39) || (code >= 0x41 && code <= 0x46) || (code >= 0x61 && code <= 0x66)

/** Validates a JSON text as strictly as `JSON.parse`, and locates parts of it. @throws SyntaxError, JsonTooDeep */
export function scanJson (text: string, { maxDepth, isWanted, maxElements = 0 }: ScanOptions): Scan {
  // For each open level: whether it is an object, and the size of the enclosing level.
  const isObject = new Uint8Array(maxDepth + 1)
  const sizes = new Uint32Array(maxDepth + 1)
  const members: Member[] = []
  let depth = 0
  let size = 0
  let outermostSize = 0
  let maxMembers = 0
  let values = 0
  let hasNullOrEmptyArray = false
  let at = skipSpace(text, 0)
  const kind = kindOf(text.charCodeAt(at))
  // The current member or element of the outermost object or array.
  let keyStart = at
  let keyEnd = at
  let start = at
  let code = text.charCodeAt(at)
  for (;;) {
    if (isObject[depth] === 1) {
      if (code !== QUOTE) fail(at)
      const key = at
      at = endOfString(text, at + 1)
      if (depth === 1) {
        keyStart = key
        keyEnd = at
      }
      code = text.charCodeAt(at)
      if (code <= SPACE) code = text.charCodeAt(at = skipSpace(text, at))
      if (code !== COLON) fail(at)
      code = text.charCodeAt(++at)
      if (code <= SPACE) code = text.charCodeAt(at = skipSpace(text, at))
    }
    if (depth === 1) start = at
    values++
    if (code === QUOTE) at = endOfString(text, at + 1)
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      const end = code + 2
      if (++depth > maxDepth) throw new JsonTooDeep()
      isObject[depth] = code === OPEN_BRACE ? 1 : 0
      code = text.charCodeAt(++at)
      if (code <= SPACE) code = text.charCodeAt(at = skipSpace(text, at))
      if (code !== end) {
        sizes[depth] = size
        size = 1
        continue
      }
      if (end === CLOSE_BRACKET) hasNullOrEmptyArray = true
      depth--
      at++
    } else {
      if (code === 0x6e) hasNullOrEmptyArray = true
      at = endOfScalar(text, at, code)
    }
    // Runs after a scalar or an empty container, and again for each container that is closed directly after it.
    for (;;) {
      if (depth === 1) {
        if (isObject[1] === 0) {
          if (members.length < maxElements) members.push({ key: '', keyStart: start, start, end: at })
        } else if (isWanted) {
          const key = decodeKey(text.slice(keyStart + 1, keyEnd - 1))
          if (isWanted(key)) members.push({ key, keyStart, start, end: at })
        }
      }
      code = text.charCodeAt(at)
      if (code <= SPACE) code = text.charCodeAt(at = skipSpace(text, at))
      if (depth === 0) {
        if (at < text.length) fail(at)
        return { kind, members, size: outermostSize, hasNullOrEmptyArray, values, largestObject: maxMembers }
      }
      at++
      if (code === COMMA) {
        size++
        code = text.charCodeAt(at)
        if (code <= SPACE) code = text.charCodeAt(at = skipSpace(text, at))
        break
      }
      if (code !== (isObject[depth] === 1 ? CLOSE_BRACE : CLOSE_BRACKET)) fail(at - 1)
      if (code === CLOSE_BRACE && size > maxMembers) maxMembers = size
      if (depth === 1) outermostSize = size
      size = sizes[depth--] ?? 0
    }
  }
}

function kindOf (code: number): Scan['kind'] {
  if (code === OPEN_BRACE) return 'object'
  return code === OPEN_BRACKET ? 'array' : 'other'
}

/** Validates a string. @param at the index after its opening quote @returns the index after its closing quote */
function endOfString (text: string, at: number): number {
  const { length } = text
  for (; at < length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) return at + 1
    if (code === BACKSLASH) at = endOfEscape(text, at + 1)
    else if (code < 0x20) fail(at)
  }
  return fail(at)
}

/** Validates an escape. @param at the index after its backslash @returns the index of its last character */
function endOfEscape (text: string, at: number): number {
  const code = text.charCodeAt(at)
  if (code !== 0x75) return escapes.has(code) ? at : fail(at)
  for (let n = 1; n <= 4; n++) if (!isHex(text.charCodeAt(at + n))) fail(at + n)
  return at + 4
}

/** Returns the index after a number or a literal. */
function endOfScalar (text: string, at: number, first: number): number {
  if (first >= 0x30 && first <= 0x39) {
    // A fast path: most numbers in long arrays have a single digit.
    const next = text.charCodeAt(at + 1)
    if (next === COMMA || next === CLOSE_BRACKET || next === CLOSE_BRACE) return at + 1
  }
  const literal = first === 0x74 ? 'true' : first === 0x66 ? 'false' : first === 0x6e ? 'null' : undefined
  if (literal !== undefined) return text.startsWith(literal, at) ? at + literal.length : fail(at)
  if (first === 0x2d) first = text.charCodeAt(++at)
  const whole = endOfDigits(text, at)
  if (first === 0x30 && whole > at + 1) fail(at)
  at = whole
  if (text.charCodeAt(at) === 0x2e) at = endOfDigits(text, at + 1)
  if ((text.charCodeAt(at) | 0x20) !== 0x65) return at
  const sign = text.charCodeAt(at + 1)
  return endOfDigits(text, sign === 0x2b || sign === 0x2d ? at + 2 : at + 1)
}

/** Returns the index after one or more digits. */
function endOfDigits (text: string, start: number): number {
  let at = start
  for (let code = text.charCodeAt(at); code >= 0x30 && code <= 0x39; code = text.charCodeAt(at)) at++
  return at === start ? fail(at) : at
}

function fail (at: number): never { throw new SyntaxError(`not JSON at character ${at}`) }
