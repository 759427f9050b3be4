// Runtimes that have no value for "absent" write `null` for it, and PHP writes `[]` for an object without members. MCP
// and JSON Schema allow neither in most places, and clients that check refuse a whole list, result or connection for
// one.
import { decodedKey, skipSpace, skipString, skipValue } from './json.ts'
import { truncate } from './text.ts'

/**
 * The form of one place in a message, as far as it decides how `null` and `[]` are read there. Without a shape, both
 * stay.
 */
export interface Shape {
  /** An object belongs here and no list: `[]` is an object without members. */
  readonly isObject?: boolean
  /** The known members of an object. */
  readonly members?: Readonly<Record<string, Shape>>
  /** Every other member of an object: its author chooses their names. */
  readonly each?: Shape
  /** Every element of a list. */
  readonly element?: Shape
  /** The JSON text that replaces `null` where a value is required. Default: the member or element is removed. */
  readonly fallback?: string
  /**
   * Decides whether `fallback` applies.
   * @param textOf the text of a member beside this one; undefined: it is not there, or null
   */
  readonly isNeeded?: (textOf: (key: string) => string | undefined) => boolean
  /** The key of a required member: where it is null, the whole object counts as null. */
  readonly needs?: string
  /** Selects another shape by the text. */
  readonly of?: (text: string) => Shape
}

/** `null`, or an empty list. It may stand within a string. */
const gap = /null|\[\s*\]/

/** A fast check: false means that a text has nothing to mend. */
export const mayHaveGaps = (text: string): boolean => gap.test(text)

interface Mended {
  /** The same text, where nothing is mended. */
  readonly text: string
  /** Where something is mended, as paths: `annotations.title`, `icons[0].sizes`; the first ones. */
  readonly places: readonly string[]
}

/** A text whose known members have neither `null` nor `[]` for what is absent. Everything else keeps its bytes. */
export function mend (text: string, shape: Shape): Mended {
  return mayHaveGaps(text) ? new Mender(text).mended(shape) : { text, places: [] }
}

/** A clause that names the mended places. @param places as `Mended` has them */
export const mendedAt = (places: readonly string[]): string =>
  `null, or [] for an object, is read as absent (${places.map((place) => place === '' ? 'the whole' : JSON.stringify(place)).join(', ')})`

interface Edit { readonly start: number, readonly end: number, readonly text: string }
/** A member of an object that was read. */
interface Part {
  readonly key: string
  readonly keyStart: number
  readonly start: number
  readonly end: number
  readonly shape: Shape | undefined
  readonly isAbsent: boolean
}

/** Max values of one text that are looked at; the rest of the text stays as it is. */
const maxValues = 20_000
/** Max paths that are told. */
const maxPlaces = 3
/** Max characters of a path. */
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
  /** The path to the current value: names of members, and indexes of elements. */
  readonly #path: Array<string | number> = []
  /** The index behind the value that was read last. */
  #at = 0
  #left = maxValues

  constructor (text: string) { this.#text = text }

  mended (shape: Shape): Mended {
    const start = skipSpace(this.#text, 0)
    if (!this.#value(start, shape)) {
      if (shape.fallback === undefined) return { text: this.#text, places: [] }
      this.#edit(start, this.#at, shape.fallback)
    }
    let text = ''
    let from = 0
    for (const edit of this.#edits.sort((a, b) => a.start - b.start)) {
      text += this.#text.slice(from, edit.start) + edit.text
      from = edit.end
    }
    return { text: from === 0 ? this.#text : text + this.#text.slice(from), places: this.#places }
  }

  /** Whether reading stopped at `maxValues`: the ends of the current values are not known. */
  get #isCut (): boolean { return this.#left <= 0 }

  /** Reads the value at a place. @returns false: it is null where null is none */
  #value (start: number, shape: Shape | undefined): boolean {
    const text = this.#text
    if (!shape) {
      this.#at = skipValue(text, start)
      return true
    }
    this.#left--
    const first = text.charCodeAt(start)
    if (shape.of) shape = shape.of(text.slice(start, skipValue(text, start)))
    if (first === OPEN_BRACE && (shape.members ?? shape.each)) return this.#object(start, shape)
    if (first === OPEN_BRACKET) {
      const end = shape.isObject === true ? skipSpace(text, start + 1) : start
      if (text.charCodeAt(end) === CLOSE_BRACKET) {
        this.#at = end + 1
        this.#note()
        this.#edit(start, this.#at, '{}')
        return true
      }
      if (shape.element) {
        this.#list(start, shape.element)
        return true
      }
    }
    this.#at = skipValue(text, start)
    if (this.#at - start !== 4 || !text.startsWith('null', start)) return true
    this.#note()
    return false
  }

  #object (start: number, shape: Shape): boolean {
    const text = this.#text
    const parts: Part[] = []
    const [edits, places] = [this.#edits.length, this.#places.length]
    let at = skipSpace(text, start + 1)
    while (text.charCodeAt(at) === QUOTE) {
      const keyStart = at
      at = skipString(text, at)
      const key = decodedKey(text.slice(keyStart + 1, at - 1))
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
    if (!parts.some(({ isAbsent }) => isAbsent)) return true
    const { needs } = shape
    if (needs !== undefined && !this.#isCut && parts.some(({ key, isAbsent }) => isAbsent && key === needs)) {
      this.#edits.length = edits
      this.#places.length = Math.min(this.#places.length, places + 1)
      return false
    }
    this.#removeFrom(parts)
    return true
  }

  /**
   * Takes out the members of an object that are absent, each with one of the commas beside it, or writes what they
   * stand for.
   */
  #removeFrom (parts: readonly Part[]): void {
    const counts = new Map<string, number>()
    for (const { key } of parts) counts.set(key, (counts.get(key) ?? 0) + 1)
    const textOf = (key: string): string | undefined => {
      const part = parts.findLast((each) => each.key === key)
      return part && !part.isAbsent ? this.#text.slice(part.start, part.end) : undefined
    }
    const run = new Run()
    for (const part of parts) {
      const { key, keyStart, start, end, shape } = part
      // Of a repeated member parsers read one or the other: it stays, to be refused.
      let isRemoved = part.isAbsent && counts.get(key) === 1
      if (isRemoved && shape?.fallback !== undefined && shape.isNeeded?.(textOf) !== false) {
        this.#edit(start, end, shape.fallback)
        isRemoved = false
      }
      run.next(keyStart, end, isRemoved, this.#edit)
    }
    run.end(this.#isCut, this.#edit)
  }

  #list (start: number, shape: Shape): void {
    const text = this.#text
    const run = new Run()
    let at = skipSpace(text, start + 1)
    for (let index = 0; at < text.length && text.charCodeAt(at) !== CLOSE_BRACKET; index++) {
      this.#path.push(index)
      let isRemoved = !this.#value(at, shape)
      if (this.#isCut) break
      this.#path.pop()
      if (isRemoved && shape.fallback !== undefined) {
        this.#edit(at, this.#at, shape.fallback)
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

  #note (): void {
    if (this.#places.length >= maxPlaces) return
    const path = this.#path.reduce<string>((way, step) =>
      typeof step === 'number' ? `${way}[${step}]` : way === '' ? step : `${way}.${step}`, '')
    this.#places.push(truncate(path, maxPath))
  }
}

/** Finds the ranges to remove from an object or a list, as its parts are read one by one. */
class Run {
  /** Where the current run of removed parts begins; undefined: there is none. */
  #start: number | undefined
  #end = 0
  /** The index behind the last part that stays. */
  #kept: number | undefined

  next (start: number, end: number, isRemoved: boolean, edit: (start: number, end: number, text: string) => void): void {
    if (isRemoved) {
      this.#start ??= start
      this.#end = end
      return
    }
    if (this.#start !== undefined) edit(this.#start, start, '')
    this.#start = undefined
    this.#kept = end
  }

  /** @param isCut parts may follow that were not read: the last run stays */
  end (isCut: boolean, edit: (start: number, end: number, text: string) => void): void {
    if (this.#start !== undefined && !isCut) edit(this.#kept ?? this.#start, this.#end, '')
  }
}
