import { skipString, type Member } from '../../../../protocol/json.ts'
import { Offsets } from './lines.ts'
import { bounds } from './strategy.ts'

/** Thrown when a text would be read too often, for example with a large value below many levels. */
export class TooCostly extends Error {}

/** The elements of an array. */
interface Elements { readonly count: number, readonly at: (index: number) => string }
/** The first members of an object, and the number of all. */
interface Members { readonly count: number, readonly first: readonly Member[] }

/** Min length of a text whose elements or members are cached. */
const large = 16 * 1024
/** The characters that may be read in total: a multiple of the text's length, and a fixed number. */
const readBounds = { times: 12, characters: 8 * 1024 * 1024 }

/**
 * Reads the arrays and objects of one JSON text repeatedly. Large ones are cached, and the total of reads is bounded.
 */
export class Containers {
  readonly #elements = new Map<string, Elements>()
  readonly #members = new Map<string, Members>()
  #left: number

  /** @param text a text that `JSON.parse` accepts */
  constructor (text: string) {
    this.#left = readBounds.times * text.length + readBounds.characters
  }

  /** @throws TooCostly */
  elements (text: string): Elements {
    const known = text.length < large ? undefined : this.#elements.get(text)
    if (known) return known
    this.#read(text)
    const ends = new Offsets()
    const starts = new Offsets()
    let at = skipSpace(text, 1)
    while (at < text.length && text.charCodeAt(at) !== 0x5d) {
      starts.push(at)
      at = skipValue(text, at)
      ends.push(at)
      at = skipComma(text, at)
    }
    const elements: Elements = { count: starts.length, at: (index) => text.slice(starts.at(index), ends.at(index)) }
    if (text.length >= large) this.#elements.set(text, elements)
    return elements
  }

  /** @throws TooCostly */
  members (text: string): Members {
    const known = text.length < large ? undefined : this.#members.get(text)
    if (known) return known
    this.#read(text)
    const first: Member[] = []
    let count = 0
    let at = skipSpace(text, 1)
    while (text.charCodeAt(at) === 0x22) {
      const keyStart = at
      const keyEnd = skipString(text, at)
      const start = skipSpace(text, skipSpace(text, keyEnd) + 1)
      const end = skipValue(text, start)
      if (count++ < bounds.items) {
        first.push({ key: JSON.parse(text.slice(keyStart, keyEnd)) as string, keyStart, start, end })
      }
      at = skipComma(text, end)
    }
    const members = { count, first }
    if (text.length >= large) this.#members.set(text, members)
    return members
  }

  #read ({ length }: string): void {
    this.#left -= length
    if (this.#left < 0) throw new TooCostly()
  }
}

const isSpace = (code: number): boolean => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09

function skipSpace (text: string, at: number): number {
  while (isSpace(text.charCodeAt(at))) at++
  return at
}

/** The index after a value, its spaces and its comma. */
function skipComma (text: string, at: number): number {
  const next = skipSpace(text, at)
  return text.charCodeAt(next) === 0x2c ? skipSpace(text, next + 1) : next
}

/** The index after the value that begins at an index. */
function skipValue (text: string, at: number): number {
  for (let depth = 0; at < text.length;) {
    const code = text.charCodeAt(at)
    if (code === 0x22) at = skipString(text, at)
    else if (code === 0x7b || code === 0x5b || code === 0x7d || code === 0x5d) {
      depth += code === 0x7b || code === 0x5b ? 1 : -1
      at++
    } else at = depth === 0 ? endOfScalar(text, at) : at + 1
    if (depth === 0) return at
  }
  return at
}

function endOfScalar (text: string, at: number): number {
  for (; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 0x2c || code === 0x7d || code === 0x5d || isSpace(code)) break
  }
  return at
}
