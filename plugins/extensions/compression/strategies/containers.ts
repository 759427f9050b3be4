import { skipString, type Member } from '../../../../protocol/json.ts'
import { OffsetList } from './lines.ts'
import { strategyBounds } from './strategy.ts'

/** Thrown when too much of a text would be read repeatedly, for example if a large value is nested deeply. */
export class TooCostly extends Error {}

/** The elements of an array. */
interface Elements { readonly count: number, readonly at: (index: number) => string }
/** The first members of an object (`strategyBounds.items` at most), and the number of all its members. */
interface Members { readonly count: number, readonly first: readonly Member[] }

/** Min length of an array or object whose elements or members are cached, in characters. */
const minCachedLength = 16 * 1024
/** The characters that may be read in total: a multiple of the text's length, and a fixed number. */
const readBounds = { times: 12, characters: 8 * 1024 * 1024 }

/**
 * Finds the elements of arrays and the members of objects in one JSON text, without parsing it. Results for large ones
 * are cached, and the number of characters that are read in total is bounded.
 */
export class JsonContainerReader {
  readonly #elementsCache = new Map<string, Elements>()
  readonly #membersCache = new Map<string, Members>()
  #remainingCharacters: number

  /** @param text a text that `JSON.parse` accepts */
  constructor (text: string) {
    this.#remainingCharacters = readBounds.times * text.length + readBounds.characters
  }

  /** @throws TooCostly */
  readElements (text: string): Elements {
    const known = text.length < minCachedLength ? undefined : this.#elementsCache.get(text)
    if (known) return known
    this.#countRead(text)
    const ends = new OffsetList()
    const starts = new OffsetList()
    let at = skipSpace(text, 1)
    while (at < text.length && text.charCodeAt(at) !== 0x5d) {
      starts.push(at)
      at = skipValue(text, at)
      ends.push(at)
      at = skipComma(text, at)
    }
    const elements: Elements = { count: starts.length, at: (index) => text.slice(starts.at(index), ends.at(index)) }
    if (text.length >= minCachedLength) this.#elementsCache.set(text, elements)
    return elements
  }

  /** @throws TooCostly */
  readMembers (text: string): Members {
    const known = text.length < minCachedLength ? undefined : this.#membersCache.get(text)
    if (known) return known
    this.#countRead(text)
    const first: Member[] = []
    let count = 0
    let at = skipSpace(text, 1)
    while (text.charCodeAt(at) === 0x22) {
      const keyStart = at
      const keyEnd = skipString(text, at)
      const start = skipSpace(text, skipSpace(text, keyEnd) + 1)
      const end = skipValue(text, start)
      if (count++ < strategyBounds.items) {
        first.push({ key: JSON.parse(text.slice(keyStart, keyEnd)) as string, keyStart, start, end })
      }
      at = skipComma(text, end)
    }
    const members = { count, first }
    if (text.length >= minCachedLength) this.#membersCache.set(text, members)
    return members
  }

  #countRead ({ length }: string): void {
    this.#remainingCharacters -= length
    if (this.#remainingCharacters < 0) throw new TooCostly()
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
