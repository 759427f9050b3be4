import type { Member } from './json.ts'

/** Characters that one step reads, which takes about a millisecond. */
export const stepSize = 256 * 1024

/** Which token comes next. */
const VALUE = 0
const VALUE_OR_END = 1
const KEY = 2
const KEY_OR_END = 3
const COLON = 4
const COMMA_OR_END = 5
const STRING = 6
const END = 7

const isSpace = (code: number): boolean => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39
const isNumbersEnd = (code: number): boolean => code === 0x2c || code === 0x5d || code === 0x7d
const isHex = (code: number): boolean => (code >= 0x30 && code <= 0x39) || (code >= 0x41 && code <= 0x46) || (code >= 0x61 && code <= 0x66)
const isEscape = (code: number): boolean => code < 0x80 && '"\\/bfnrt'.includes(String.fromCharCode(code))
/** Max length of a key that is decoded as a whole, in characters, with its quotes and escapes; of a longer one the beginning is. */
const maxKey = 6 * 8 * 1024 + 2
/** The beginning of a string, up to its last whole escape. */
const BEGINNING = /^"(?:[^\\]|\\u[\da-f]{4}|\\[^u])*/i
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const literals = new Map([[0x74, 'true'], [0x66, 'false'], [0x6e, 'null']])

/** The keys of members that are to be found. */
export interface WantedKeys { readonly size: number, has: (key: string) => boolean }

/** Thrown for JSON that is nested too deeply. */
export class TooDeep extends Error {}

/**
 * Checks a JSON text (RFC 8259) as `JSON.parse` does, in steps, so that a large text does not hold the event loop; and without making
 * values of it, which may take fifty times the memory of the text, and a second for 16 MiB of empty arrays. Finds the members of an
 * object, or the elements of an array, on the way.
 */
export class JsonScanner {
  /** Of an object, the members with one of the wanted keys; of an array, its elements, with empty keys. Complete at the end. */
  readonly members: Member[] = []
  /** The elements of an array, also of those beyond `maxElements`. */
  elements = 0
  isArray = false
  isObject = false
  /** Whether there is a `null` or an empty array. */
  hasGaps = false
  readonly #text: string
  /** For each level that is open, 1 where it is an object. */
  readonly #levels: Uint8Array
  readonly #wanted: WantedKeys
  readonly #maxElements: number
  #depth = 0
  #next = VALUE
  #at = 0
  #isKey = false
  /** Where the current key of the outermost object begins, and its end. */
  #keyStart = 0
  #keyEnd = 0
  #start = 0

  /**
   * @param maxDepth max levels of nesting
   * @param wanted keys of an object's members that are to be found
   * @param maxElements max elements of an array that are to be found
   */
  constructor (text: string, maxDepth: number, wanted: WantedKeys, maxElements = Infinity) {
    this.#text = text
    this.#levels = new Uint8Array(maxDepth + 1)
    this.#wanted = wanted
    this.#maxElements = maxElements
  }

  /**
   * Reads on.
   * @param size characters to read; numbers and literals are read as a whole
   * @returns true when the text was read to its end
   * @throws SyntaxError, TooDeep
   */
  step (size = stepSize): boolean {
    const text = this.#text
    const until = Math.min(text.length, this.#at + size)
    while (this.#at < until) {
      if (this.#next === STRING) { this.#string(until); continue }
      const code = text.charCodeAt(this.#at)
      if (isSpace(code)) { this.#at++; continue }
      switch (this.#next) {
        case VALUE: this.#value(code); break
        case VALUE_OR_END:
          if (code === 0x5d) {
            this.hasGaps = true
            this.#close(code)
          } else this.#value(code)
          break
        case KEY: this.#key(code); break
        case KEY_OR_END: if (code === 0x7d) this.#close(code); else this.#key(code); break
        case COLON:
          if (code !== 0x3a) this.#fail()
          this.#next = VALUE
          this.#at++
          break
        case COMMA_OR_END:
          if (code === 0x2c) {
            this.#next = this.#levels[this.#depth] === 1 ? KEY : VALUE
            this.#at++
          } else this.#close(code)
          break
        default: this.#fail()
      }
    }
    if (this.#at < text.length) return false
    if (this.#next !== END) this.#fail()
    return true
  }

  #value (code: number): void {
    if (this.#depth === 1) this.#start = this.#at
    else if (this.#depth === 0) {
      this.isArray = code === 0x5b
      this.isObject = code === 0x7b
    }
    if (code === 0x22) {
      this.#isKey = false
      this.#next = STRING
      this.#at++
    } else if (code === 0x7b || code === 0x5b) {
      if (this.#depth >= this.#levels.length - 1) throw new TooDeep()
      this.#levels[++this.#depth] = code === 0x7b ? 1 : 0
      this.#next = code === 0x7b ? KEY_OR_END : VALUE_OR_END
      this.#at++
    } else {
      this.#at = this.#endOfScalar(code)
      this.#valueEnded()
    }
  }

  #endOfScalar (code: number): number {
    const literal = literals.get(code)
    if (literal !== undefined) {
      if (!this.#text.startsWith(literal, this.#at)) this.#fail()
      if (code === 0x6e) this.hasGaps = true
      return this.#at + literal.length
    }
    // A single digit, as most of many numbers are.
    if (isDigit(code) && isNumbersEnd(this.#text.charCodeAt(this.#at + 1))) return this.#at + 1
    NUMBER.lastIndex = this.#at
    if (!NUMBER.test(this.#text)) this.#fail()
    return NUMBER.lastIndex
  }

  #key (code: number): void {
    if (code !== 0x22) this.#fail()
    if (this.#depth === 1) this.#keyStart = this.#at
    this.#isKey = true
    this.#next = STRING
    this.#at++
  }

  /** Reads on within a string, up to its end or to `until`. */
  #string (until: number): void {
    const text = this.#text
    let at = this.#at
    for (; at < until; at++) {
      const code = text.charCodeAt(at)
      if (code < 0x20) this.#fail()
      if (code === 0x22) {
        this.#at = at + 1
        if (!this.#isKey) { this.#valueEnded(); return }
        if (this.#depth === 1) this.#keyEnd = this.#at
        this.#next = COLON
        return
      }
      if (code === 0x5c) at += this.#escape(at + 1)
    }
    this.#at = at
  }

  /** The length of an escape behind its backslash. */
  #escape (at: number): number {
    const code = this.#text.charCodeAt(at)
    if (isEscape(code)) return 1
    if (code !== 0x75) this.#fail()
    for (let n = 1; n <= 4; n++) if (!isHex(this.#text.charCodeAt(at + n))) this.#fail()
    return 5
  }

  #close (code: number): void {
    if (code !== (this.#levels[this.#depth] === 1 ? 0x7d : 0x5d) || this.#depth === 0) this.#fail()
    this.#depth--
    this.#at++
    this.#valueEnded()
  }

  #valueEnded (): void {
    this.#next = this.#depth === 0 ? END : COMMA_OR_END
    if (this.#depth !== 1) return
    const end = this.#at
    if (this.isArray) {
      if (this.elements++ < this.#maxElements) this.members.push({ key: '', keyStart: this.#start, start: this.#start, end })
      return
    }
    if (this.#wanted.size === 0) return
    const key = decodedKey(this.#text.slice(this.#keyStart, this.#keyEnd))
    if (this.#wanted.has(key)) this.members.push({ key, keyStart: this.#keyStart, start: this.#start, end })
  }

  #fail (): never { throw new SyntaxError(`not JSON at character ${this.#at}`) }
}

/** A key without its escapes, or the beginning of a long one. */
function decodedKey (text: string): string {
  if (text.length <= maxKey) return JSON.parse(text) as string
  return JSON.parse(`${BEGINNING.exec(text.slice(0, maxKey))?.[0] ?? '"'}"`) as string
}
