import { skipString, type Member } from '../../../../protocol/json.ts'
import { Offsets } from './lines.ts'
import { bounds } from './strategy.ts'

/** Thrown where a text would have to be read too often, as one that is nested in many levels around a large value. */
export class TooCostly extends Error {}

/** The elements of an array, by where they are. */
interface Elements { readonly count: number, readonly at: (index: number) => string }
/** The first members of an object, and how many there are. */
interface Members { readonly count: number, readonly first: readonly Member[] }

/** Texts from this length on are read once. */
const large = 16 * 1024
/** A text may be read as often as this, its parts with it, and as many characters in addition. */
const most = { times: 12, characters: 8 * 1024 * 1024 }

/**
 * Reads the arrays and objects of one JSON text, which renderings ask for again and again. What is large is remembered by its place, and
 * how much is read is bounded.
 */
export class Containers {
  readonly #elements = new Map<string, Elements>()
  readonly #members = new Map<string, Members>()
  #left: number

  /** @param text a text that `JSON.parse` accepts */
  constructor (text: string) {
    this.#left = most.times * text.length + most.characters
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
      if (count++ < bounds.items) first.push({ key: JSON.parse(text.slice(keyStart, keyEnd)) as string, keyStart, start, end })
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

/** The index of what follows a value: behind the comma, where there is one. */
function skipComma (text: string, at: number): number {
  const next = skipSpace(text, at)
  return text.charCodeAt(next) === 0x2c ? skipSpace(text, next + 1) : next
}

/** The index behind the value that begins at an index. */
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
