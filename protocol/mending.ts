// Repairs messages from servers. Many languages write an absent member as `null`, and PHP writes an empty object as
// `[]`. MCP and JSON Schema allow neither in most places, and strict clients reject a whole list, result or connection
// because of one. Values of a wrong type and missing required members are repaired, too.
import { decodeKey, membersOf, skipSpace, skipString, skipValue } from './json.ts'
import { truncate } from './text.ts'
import type { Shape, JsonType } from './shapes/shape.ts'
import { MemberRemover } from './shapes/removed-run.ts'

/** Returns the type of the value that starts at `at`; undefined for null. */
function typeAt (text: string, at: number): JsonType | undefined {
  switch (text[at]) {
    case '{': return 'object'
    case '[': return 'list'
    case '"': return 'string'
    case 't': case 'f': return 'boolean'
    case 'n': return undefined
    default: return 'number'
  }
}

/**
 * Converts an object whose keys are numbers to a list, as JSON text. PHP writes a list without its first element as
 * `{"1": …, "2": …}`.
 * @returns undefined for any other value
 */
export function indexedObjectToList (text: string): string | undefined {
  const members = membersOf(text)
  if (members.length === 0 || !members.every(({ key }) => /^\d{1,9}$/.test(key))) return undefined
  return `[${members.map(({ start, end }) => text.slice(start, end)).join()}]`
}

/** Matches `null` and empty lists, also within strings. */
const nullOrEmptyList = /null|\[\s*\]/

/** A fast check for `null` and empty lists. If false, only wrong types and missing members can need a repair. */
export const mayNeedMending = (text: string): boolean => nullOrEmptyList.test(text)

interface MendResult {
  /** The original text if nothing was repaired. */
  readonly text: string
  /** The paths of the first `maxPlaces` repaired values, such as `annotations.title` and `icons[0].sizes`. */
  readonly places: readonly string[]
}

/**
 * Repairs a JSON text: removes or replaces values that the shape does not allow (`null`, `[]`, or another type), and
 * adds required members. Everything else keeps its bytes.
 * @param isChecked whether a text without `null` and `[]` is scanned, too; otherwise it is returned as it is
 */
export function mend (text: string, shape: Shape, isChecked = false): MendResult {
  return isChecked || mayNeedMending(text) ? new Mender(text).mended(shape) : { text, places: [] }
}

/** Describes the repairs for a log line. @param places as in `MendResult` */
export function describeMended (places: readonly string[]): string {
  const where = places.map((place) => place === '' ? 'the whole' : JSON.stringify(place)).join(', ')
  return `null, [] for an object, or a value of another type is treated as absent (${where})`
}

interface TextEdit { readonly start: number, readonly end: number, readonly text: string }
/** A member of an object, as read. `isAbsent`: its value is `null`, or treated as `null`. */
interface MemberPart {
  readonly key: string
  readonly keyStart: number
  readonly start: number
  readonly end: number
  readonly shape: Shape | undefined
  readonly isAbsent: boolean
}

/** Max values examined in one text; the rest of the text is left unchanged. */
const maxValues = 20_000
/** Max paths in a report. */
const maxPlaces = 3
/** Max characters of a path. */
const maxPath = 100

const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const COMMA = 0x2c
const QUOTE = 0x22

type TextOf = (key: string) => string | undefined
const hasFallback = (shape: Shape | undefined, textOf: TextOf): shape is Shape =>
  shape?.fallback !== undefined && shape.isNeeded?.((key) => parseOptional(textOf(key))) !== false
const parseOptional = (text: string | undefined): unknown => text === undefined ? undefined : JSON.parse(text)
const fallbackOf = ({ fallback = 'null' }: Shape, textOf: TextOf = () => undefined): string =>
  typeof fallback === 'string' ? fallback : fallback(textOf)

/** Scans a text once from start to end, and collects edits. */
class Mender {
  readonly #text: string
  readonly #edits: TextEdit[] = []
  readonly #places: string[] = []
  /** The path to the current value: member names and element indexes. */
  readonly #path: Array<string | number> = []
  /** The index after the last value that was read. */
  #at = 0
  #left = maxValues

  constructor (text: string) { this.#text = text }

  mended (shape: Shape): MendResult {
    const start = skipSpace(this.#text, 0)
    if (!this.#value(start, shape)) {
      if (shape.fallback === undefined) return { text: this.#text, places: [] }
      this.#edit(start, this.#at, fallbackOf(shape))
    }
    let text = ''
    let from = 0
    // At the same position, insertions are applied before replacements.
    for (const edit of this.#edits.sort((a, b) => a.start - b.start || a.end - b.end)) {
      text += this.#text.slice(from, edit.start) + edit.text
      from = edit.end
    }
    return { text: from === 0 ? this.#text : text + this.#text.slice(from), places: this.#places }
  }

  /** Whether scanning stopped at `maxValues`; the ends of the enclosing values are then unknown. */
  get #isCut (): boolean { return this.#left <= 0 }

  /** Repairs the value at a position. @returns false if it is `null`, or treated as `null`, and must be replaced */
  #value (start: number, shape: Shape | undefined): boolean {
    const text = this.#text
    if (!shape) {
      this.#at = skipValue(text, start)
      return true
    }
    this.#left--
    const first = text.charCodeAt(start)
    if (shape.select) shape = shape.select(text.slice(start, skipValue(text, start)))
    if (!this.#isOfType(start, shape)) return this.#coerce(start, shape)
    if (first === OPEN_BRACE && (shape.members ?? shape.each)) return this.#object(start, shape)
    if (first === OPEN_BRACKET) {
      const end = shape.isObject === true ? skipSpace(text, start + 1) : start
      if (text.charCodeAt(end) === CLOSE_BRACKET) {
        this.#at = end + 1
        this.#recordPlace()
        this.#edit(start, this.#at, shape.required === undefined ? '{}' : mend('{}', shape, true).text)
        return true
      }
      if (shape.element) {
        this.#list(start, shape.element)
        return true
      }
    }
    this.#at = skipValue(text, start)
    if (this.#at - start !== 4 || !text.startsWith('null', start)) return true
    this.#recordPlace()
    return false
  }

  /**
   * Whether a value has the expected type. `null`, and an empty list in place of an object, count as correct: they are
   * repaired elsewhere.
   */
  #isOfType (start: number, { type, values, isObject }: Shape): boolean {
    if (type === undefined && values === undefined) return true
    const text = this.#text
    const found = typeAt(text, start)
    if (found === undefined || (isObject === true && /^\[\s*\]/.test(text.slice(start, start + 64)))) return true
    if (type !== undefined && found !== type) return false
    return values?.includes(text.slice(start, skipValue(text, start))) !== false
  }

  /** Converts a value of a wrong type. @returns false if that is impossible */
  #coerce (start: number, { coerce }: Shape): boolean {
    this.#at = skipValue(this.#text, start)
    this.#recordPlace()
    const coerced = coerce?.(this.#text.slice(start, this.#at))
    if (coerced === undefined) return false
    this.#edit(start, this.#at, coerced)
    return true
  }

  #object (start: number, shape: Shape): boolean {
    const text = this.#text
    const parts: MemberPart[] = []
    const [edits, places] = [this.#edits.length, this.#places.length]
    let at = skipSpace(text, start + 1)
    while (text.charCodeAt(at) === QUOTE) {
      const keyStart = at
      at = skipString(text, at)
      const key = decodeKey(text.slice(keyStart + 1, at - 1))
      const own = shape.members && Object.hasOwn(shape.members, key) ? shape.members[key] : shape.each
      const valueStart = skipSpace(text, skipSpace(text, at) + 1)
      this.#path.push(key)
      const isAbsent = !this.#value(valueStart, own)
      if (this.#isCut) break
      this.#path.pop()
      parts.push({ key, keyStart, start: valueStart, end: this.#at, shape: own, isAbsent })
      at = skipSpace(text, this.#at)
      if (text.charCodeAt(at) !== COMMA) break
      at = skipSpace(text, at + 1)
    }
    this.#at = text.charCodeAt(at) === CLOSE_BRACE ? at + 1 : at
    this.#addRequired(start, shape, parts)
    if (!parts.some(({ isAbsent }) => isAbsent)) return true
    const { needs } = shape
    if (needs !== undefined && !this.#isCut && parts.some(({ key, isAbsent }) => isAbsent && key === needs)) {
      this.#edits.length = edits
      this.#places.length = Math.min(this.#places.length, places + 1)
      return false
    }
    this.#removeAbsent(parts)
    return true
  }

  /** Adds the required members that an object lacks. */
  #addRequired (start: number, { required, members }: Shape, parts: readonly MemberPart[]): void {
    if (required === undefined || this.#isCut) return
    const textOf = this.#textOf(parts)
    const stays = parts.some(({ key, isAbsent, shape }, at) =>
      !isAbsent || hasFallback(shape, textOf) || parts.some((other, place) => place !== at && other.key === key))
    const added = required.flatMap((key) => {
      const shape = members?.[key]
      if (parts.some((part) => part.key === key) || !hasFallback(shape, textOf)) return []
      this.#path.push(`${key} (missing)`)
      this.#recordPlace()
      this.#path.pop()
      return [`${JSON.stringify(key)}:${fallbackOf(shape, textOf)}`]
    })
    if (added.length > 0) this.#edit(start + 1, start + 1, `${added.join()}${stays ? ',' : ''}`)
  }

  /** Returns the text of a member; undefined if it is missing or null. */
  readonly #textOf = (parts: readonly MemberPart[]) => (key: string): string | undefined => {
    const part = parts.findLast((each) => each.key === key)
    return part && !part.isAbsent ? this.#text.slice(part.start, part.end) : undefined
  }

  /** Removes the absent members of an object, or replaces them by their fallbacks. */
  #removeAbsent (parts: readonly MemberPart[]): void {
    const counts = new Map<string, number>()
    for (const { key } of parts) counts.set(key, (counts.get(key) ?? 0) + 1)
    const textOf = this.#textOf(parts)
    const run = new MemberRemover()
    for (const part of parts) {
      const { key, keyStart, start, end, shape } = part
      // Parsers differ in which of two duplicate members they read, so both stay, even if one is null.
      let isRemoved = part.isAbsent && counts.get(key) === 1
      if (isRemoved && hasFallback(shape, textOf)) {
        this.#edit(start, end, fallbackOf(shape, textOf))
        isRemoved = false
      }
      run.next(keyStart, end, isRemoved, this.#edit)
    }
    run.end(this.#isCut, this.#edit)
  }

  #list (start: number, shape: Shape): void {
    const text = this.#text
    const run = new MemberRemover()
    let at = skipSpace(text, start + 1)
    for (let index = 0; at < text.length && text.charCodeAt(at) !== CLOSE_BRACKET; index++) {
      this.#path.push(index)
      let isRemoved = !this.#value(at, shape)
      if (this.#isCut) break
      this.#path.pop()
      if (isRemoved && shape.fallback !== undefined) {
        this.#edit(at, this.#at, fallbackOf(shape))
        isRemoved = false
      }
      run.next(at, this.#at, isRemoved, this.#edit)
      at = skipSpace(text, this.#at)
      if (text.charCodeAt(at) !== COMMA) break
      at = skipSpace(text, at + 1)
    }
    run.end(this.#isCut, this.#edit)
    this.#at = Math.min(at + 1, text.length)
  }

  readonly #edit = (start: number, end: number, text: string): void => { this.#edits.push({ start, end, text }) }

  /** Records that the value at the current path was repaired. */
  #recordPlace (): void {
    if (this.#places.length >= maxPlaces) return
    const path = this.#path.reduce<string>((way, step) =>
      typeof step === 'number' ? `${way}[${step}]` : way === '' ? step : `${way}.${step}`, '')
    this.#places.push(truncate(path, maxPath))
  }
}
