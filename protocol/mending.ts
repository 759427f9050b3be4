// Runtimes that have no value for "absent" write `null` for it, and PHP writes `[]` for an object without members. MCP and JSON
// Schema allow neither in most places, and clients that check refuse a whole list, result or connection for one.
import { decodedKey, skipSpace, skipString, skipValue } from './json.ts'

/** What belongs in one place of a message, as far as reading `null` and `[]` there needs it. In a place without a shape, both stay. */
export interface Shape {
  /** An object belongs here and no list: `[]` is an object without members. */
  readonly isObject?: boolean
  /** The known members of an object. */
  readonly members?: Readonly<Record<string, Shape>>
  /** Every other member of an object: its author chooses their names. */
  readonly each?: Shape
  /** Every element of a list. */
  readonly element?: Shape
  /** What `null` stands for where the place may not be empty, as JSON text. Default: the member or element goes. */
  readonly fallback?: string
  /** When `fallback` counts. @param textOf the text of a member beside this one; undefined: it is not there, or null */
  readonly isNeeded?: (textOf: (key: string) => string | undefined) => boolean
  /** A member that an object is nothing without: where that is null, the object is. */
  readonly needs?: string
  /** The shape that counts for this text. */
  readonly of?: (text: string) => Shape
}

/** `null`, or an empty list. It may stand within a string. */
const gap = /null|\[\s*\]/

/** False: there is nothing in a text that could be mended. A fast look, since most texts are such. */
export const mayHaveGaps = (text: string): boolean => gap.test(text)

export interface Mended {
  /** The same text, where nothing is mended. */
  readonly text: string
  /** Where something is mended, as paths: `annotations.title`, `icons[0].sizes`; the first ones. */
  readonly places: readonly string[]
}

/** A text whose known members have neither `null` nor `[]` for what is absent. Everything else keeps its bytes. */
export function mend (text: string, shape: Shape): Mended {
  return mayHaveGaps(text) ? new Mender(text).mended(shape) : { text, places: [] }
}

/** What was mended, as a clause. @param places as `Mended` has them */
export const mendedAt = (places: readonly string[]): string =>
  `null, or [] for an object, is read as absent (${places.map((place) => place === '' ? 'the whole' : JSON.stringify(place)).join(', ')})`

interface Edit { readonly start: number, readonly end: number, readonly text: string }
/** A member of an object, or an element of a list, that was read. */
interface Part { readonly key: string, readonly keyStart: number, readonly start: number, readonly end: number, shape: Shape | undefined }

/** Max changes of one text. What is beyond stays. */
const maxEdits = 10_000
/** Max paths that are told. */
const maxPlaces = 3
/** Characters of a path that are told. */
const maxPath = 100

const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const COMMA = 0x2c
const QUOTE = 0x22

/** Reads one text, once from its beginning to its end, and notes what changes. */
class Mender {
  readonly #text: string
  readonly #edits: Edit[] = []
  readonly #places: string[] = []
  /** Behind the value that was read last. */
  #at = 0

  constructor (text: string) { this.#text = text }

  mended (shape: Shape): Mended {
    const start = skipSpace(this.#text, 0)
    if (!this.#value(start, shape, '')) this.#edit(start, this.#at, shape.fallback ?? 'null')
    if (this.#edits.length === 0) return { text: this.#text, places: [] }
    let text = ''
    let from = 0
    for (const edit of this.#edits.sort((a, b) => a.start - b.start)) {
      text += this.#text.slice(from, edit.start) + edit.text
      from = edit.end
    }
    return { text: text + this.#text.slice(from), places: this.#places }
  }

  /** Reads the value at a place. @returns false: it is null where null is none */
  #value (start: number, shape: Shape | undefined, path: string): boolean {
    const text = this.#text
    const first = text.charCodeAt(start)
    const resolved = shape?.of ? shape.of(text.slice(start, skipValue(text, start))) : shape
    if (resolved && first === OPEN_BRACE && (resolved.members ?? resolved.each)) return this.#object(start, resolved, path)
    if (resolved?.isObject === true && first === OPEN_BRACKET) {
      const end = skipSpace(text, start + 1)
      if (text.charCodeAt(end) === CLOSE_BRACKET) {
        this.#at = end + 1
        this.#note(path)
        this.#edit(start, this.#at, '{}')
        return true
      }
    }
    if (resolved?.element && first === OPEN_BRACKET) {
      this.#list(start, resolved.element, path)
      return true
    }
    this.#at = skipValue(text, start)
    if (!resolved || !(this.#at - start === 4 && text.startsWith('null', start))) return true
    this.#note(path)
    return false
  }

  #object (start: number, shape: Shape, path: string): boolean {
    const text = this.#text
    const parts: Part[] = []
    const absent: Part[] = []
    const before = this.#edits.length
    let at = skipSpace(text, start + 1)
    while (text.charCodeAt(at) === QUOTE) {
      const keyStart = at
      at = skipString(text, at)
      const key = decodedKey(text.slice(keyStart + 1, at - 1))
      const own = shape.members && Object.hasOwn(shape.members, key) ? shape.members[key] : shape.each
      const valueStart = skipSpace(text, skipSpace(text, at) + 1)
      const isThere = this.#value(valueStart, own, path === '' ? key : `${path}.${key}`)
      const part = { key, keyStart, start: valueStart, end: this.#at, shape: own }
      parts.push(part)
      if (!isThere) absent.push(part)
      at = skipSpace(text, this.#at)
      if (text.charCodeAt(at) !== COMMA) break
      at = skipSpace(text, at + 1)
    }
    this.#at = text.charCodeAt(at) === CLOSE_BRACE ? at + 1 : at
    if (absent.length === 0) return true
    if (shape.needs !== undefined && absent.some(({ key }) => key === shape.needs)) {
      this.#edits.length = before
      return false
    }
    const counts = new Map<string, number>()
    for (const { key } of parts) counts.set(key, (counts.get(key) ?? 0) + 1)
    // Of a repeated member parsers read one or the other: it stays, to be refused.
    const removed = absent.filter((part) => counts.get(part.key) === 1 && !this.#fill(part, parts, absent))
    this.#remove(parts, new Set(removed))
    return true
  }

  #list (start: number, shape: Shape, path: string): void {
    const text = this.#text
    const parts: Part[] = []
    const absent = new Set<Part>()
    let at = skipSpace(text, start + 1)
    while (at < text.length && text.charCodeAt(at) !== CLOSE_BRACKET) {
      const isThere = this.#value(at, shape, `${path}[${parts.length}]`)
      const part = { key: '', keyStart: at, start: at, end: this.#at, shape }
      parts.push(part)
      if (!isThere && !this.#fill(part, parts, [])) absent.add(part)
      at = skipSpace(text, this.#at)
      if (text.charCodeAt(at) !== COMMA) break
      at = skipSpace(text, at + 1)
    }
    this.#at = Math.min(at + 1, text.length)
    this.#remove(parts, absent)
  }

  /** Writes what a null stands for in its place. @returns false: it stands for nothing */
  #fill ({ start, end, shape }: Part, parts: readonly Part[], absent: readonly Part[]): boolean {
    if (shape?.fallback === undefined) return false
    const textOf = (key: string): string | undefined => {
      const part = parts.findLast((each) => each.key === key)
      return part && !absent.includes(part) ? this.#text.slice(part.start, part.end) : undefined
    }
    if (shape.isNeeded?.(textOf) === false) return false
    this.#edit(start, end, shape.fallback)
    return true
  }

  /** Takes members or elements out, each with one of the commas beside it. */
  #remove (parts: readonly Part[], absent: ReadonlySet<Part>): void {
    if (absent.size === 0) return
    let last = parts.length
    while (last > 0 && absent.has(parts[last - 1] as Part)) last--
    for (const [index, part] of parts.entries()) {
      if (index >= last) break
      if (absent.has(part)) this.#edit(part.keyStart, parts[index + 1]?.keyStart ?? part.end, '')
    }
    const end = parts.at(-1)?.end ?? 0
    if (last < parts.length) this.#edit(last > 0 ? parts[last - 1]?.end ?? 0 : parts[0]?.keyStart ?? 0, end, '')
  }

  #edit (start: number, end: number, text: string): void {
    if (this.#edits.length < maxEdits) this.#edits.push({ start, end, text })
  }

  #note (path: string): void {
    if (this.#places.length < maxPlaces) this.#places.push(path.slice(0, maxPath))
  }
}
