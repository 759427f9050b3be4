import { elementsOf, isDeeperThan, membersOf, type Member } from '../../../../protocol/json.ts'
import { scanJson } from '../../../../protocol/json-scanner.ts'
import { truncate } from '../../../../protocol/text.ts'
import { visitLines } from './lines.ts'
import { strategyBounds, formatQuantity, formatNumber, type Renderings, type Strategy } from './strategy.ts'

/**
 * How much of a value is rendered: the max numbers of items of an array, keys of an object, characters of a string, and
 * nested levels.
 */
interface Amount { items: number, keys: number, characters: number, depth: number }

/** The highest level of a rendering. */
const maxLevel = 180
/** Max nesting depth; a value with a greater depth is treated as plain text. */
const maxNesting = 500

const amountOf = (level: number): Amount => ({
  items: Math.floor(1.063 ** level) - 1,
  keys: Math.floor(6 * 1.063 ** level),
  characters: Math.floor(32 * 1.057 ** level),
  depth: 2 + Math.floor(level / 9)
})

/**
 * The strategy `json`: keeps the structure. Of a long array, some items are kept after a description of all items; long
 * strings are truncated.
 */
export const jsonStrategy: Strategy = (text) => {
  const value = valueOf(text)
  return value === undefined ? undefined : renderingsOf(value, false)
}

/**
 * Renders a value so that programs can still read it: all keys stay, only arrays and strings are shortened, and only
 * shortened strings say how much is missing.
 * @param text one JSON value
 */
export const renderAsValidJson = (text: string): Renderings => renderingsOf(text, true)

/** @param isPlain whether the renderings must stay readable for programs, without inserted descriptions */
function renderingsOf (text: string, isPlain: boolean): Renderings {
  const containers = new Containers()
  return {
    highestLevel: maxLevel,
    render: (level, maxLength) => {
      try {
        return new Writer(containers, isPlain, maxLength).write(text, amountOf(level))
      } catch (error) {
        if (error instanceof TooLong) return undefined
        throw error
      }
    }
  }
}

/**
 * Returns a text as one JSON value: as it is, or, for lines of JSON objects, as an array; undefined for other texts.
 */
function valueOf (text: string): string | undefined {
  const trimmed = text.trim()
  if (!/^[[{]/.test(trimmed) || isDeeperThan(trimmed, maxNesting)) return undefined
  if (isJson(trimmed)) return trimmed
  let lines = 0
  let isValid = true
  visitLines(trimmed, (start, end) => {
    const line = trimmed.slice(start, end)
    if (line.trim() === '') return true
    isValid = ++lines <= strategyBounds.jsonLines && line.startsWith('{') && isJson(line)
    return isValid
  })
  return isValid && lines > 1 ? `[${trimmed.replace(/\n\s*/g, ',')}]` : undefined
}

/** Min length of a text that is validated without `JSON.parse`, to save memory, and of an array or object to cache. */
const minLargeLength = 64 * 1024

function isJson (text: string): boolean {
  try {
    if (text.length < minLargeLength) JSON.parse(text)
    else scanJson(text, { maxDepth: maxNesting })
    return true
  } catch {
    return false
  }
}

/** Parses the arrays and objects of one text. Large ones are cached, since the text is rendered at several levels. */
class Containers {
  readonly #elements = new Map<string, string[]>()
  readonly #members = new Map<string, Member[]>()
  readonly #schemas = new Map<string, Schema>()

  elements (array: string): string[] { return cached(this.#elements, array, elementsOf) }

  members (object: string): Member[] { return cached(this.#members, object, membersOf) }

  /** Returns the schema of an array's items. */
  schema (array: string): Schema { return cached(this.#schemas, array, (text) => schemaOf(text, this)) }
}

function cached<Part> (known: Map<string, Part>, text: string, read: (text: string) => Part): Part {
  const part = known.get(text) ?? read(text)
  if (text.length >= minLargeLength) known.set(text, part)
  return part
}

/** Thrown when a rendering exceeds its max length. */
class TooLong extends Error {}

/**
 * Returns how much is rendered of the values in an array or object.
 * @param amount how much is rendered of the array or object itself
 */
const innerBounds = (amount: Amount): Amount =>
  ({ ...amount, depth: amount.depth - 1, items: Math.ceil(amount.items / 2) })

/** Writes one rendering. The JSON text of numbers and short strings is copied. */
class Writer {
  readonly #containers: Containers
  readonly #isPlain: boolean
  /** The number of characters that may still be written. */
  #remainingLength: number

  /** @param maxLength max length of the rendering, in characters */
  constructor (containers: Containers, isPlain: boolean, maxLength: number) {
    this.#containers = containers
    this.#isPlain = isPlain
    this.#remainingLength = maxLength
  }

  /** Writes a shortened value. @throws TooLong */
  write (text: string, amount: Amount): string {
    const first = text.charAt(0)
    if (first === '[') return this.#writeArray(text, amount)
    if (first === '{') return this.#writeObject(text, amount)
    return this.#count(first === '"' ? writtenString(text, amount.characters) : text)
  }

  /** Subtracts the length of a part and a separator from the remaining length. @returns the part @throws TooLong */
  #count (part: string): string {
    this.#remainingLength -= part.length + 1
    if (this.#remainingLength < 0) throw new TooLong()
    return part
  }

  #writeArray (text: string, amount: Amount): string {
    const elements = this.#containers.elements(text)
    const count = elements.length
    if (!this.#isPlain && amount.depth === 0 && count > 0) {
      return this.#count(JSON.stringify(`[… ${formatQuantity(count, 'item')} …]`))
    }
    this.#count('')
    const parts: string[] = []
    const write = (from: number, to: number): void => {
      for (const element of elements.slice(from, to)) parts.push(this.write(element, innerBounds(amount)))
    }
    // If only one item would be omitted, it is written: a note about it would be no shorter.
    if (count <= amount.items + 1) {
      write(0, count)
      return `[${parts.join(',')}]`
    }
    const tail = Math.floor(amount.items / 4)
    if (!this.#isPlain) {
      const last = tail === 0 ? '' : ` and the last ${formatNumber(tail)}`
      const shown = amount.items === 0 ? 'none shown' : `the first ${formatNumber(amount.items - tail)}${last} shown`
      const { type, coversAllItems: isOfAll } = this.#containers.schema(text)
      parts.push(this.#count(JSON.stringify(`${formatQuantity(count, 'item')}, ${isOfAll ? 'each' : 'most'} ${type}; ` +
        `${shown}`)))
    }
    write(0, amount.items - tail)
    write(count - tail, count)
    return `[${parts.join(',')}]`
  }

  #writeObject (text: string, amount: Amount): string {
    const members = this.#containers.members(text)
    const count = members.length
    if (!this.#isPlain && amount.depth === 0 && count > 0) {
      return this.#count(JSON.stringify(`{… ${formatQuantity(count, 'key')} …}`))
    }
    this.#count('')
    // Programs may need any of the keys, so a plain rendering keeps all of them.
    const shown = this.#isPlain ? members : members.slice(0, amount.keys)
    const parts = shown.map(({ keyStart, start, end }) => {
      const key = this.#count(text.slice(keyStart, start).replace(/\s*:\s*$/, ':'))
      return `${key}${this.write(text.slice(start, end), innerBounds(amount))}`
    })
    const hidden = members.slice(shown.length, shown.length + amount.keys)
    if (hidden.length > 0) {
      const names = hidden.map(({ key }) => key).join(', ')
      const more = `${formatQuantity(count - shown.length, 'more key')}: ${truncate(names, 8 * amount.keys)}`
      parts.push(this.#count(`"…":${JSON.stringify(more)}`))
    }
    return `{${parts.join(',')}}`
  }
}

function writtenString (text: string, characters: number): string {
  if (text.length <= characters + 40) return text
  const value = JSON.parse(text) as string
  const head = truncate(value, characters)
  return JSON.stringify(`${head}… (${formatQuantity(value.length - head.length, 'more character')})`)
}

/**
 * Max numbers for a schema. `items`: sampled items of the array; `inner`: sampled items of each nested array; `keys`:
 * keys of each object; `depth`: nested levels; `characters`: length of the type.
 */
const schemaBounds = { items: 20_000, inner: 5, keys: 30, depth: 3, characters: 600 }

/** What is known about the items of an array. */
interface Schema {
  /** The type in TypeScript notation, for example `{id: number, name?: string, tags: string[]}`. */
  readonly type: string
  /** Whether all items were examined to find the type, or only a sample of a long array. */
  readonly coversAllItems: boolean
}

function schemaOf (array: string, containers: Containers): Schema {
  const elements = containers.elements(array)
  // The step is odd, so that both kinds are sampled if two kinds of items alternate.
  const step = elements.length <= schemaBounds.items ? 1 : Math.ceil(elements.length / schemaBounds.items) | 1
  const type = typeOf(elements.filter((_, index) => index % step === 0), schemaBounds.depth, containers)
  return {
    type: type.length <= schemaBounds.characters
      ? type
      : `${truncate(type, schemaBounds.characters)}…`,
    coversAllItems: step === 1
  }
}

/** Returns the union of the types of several values, given as JSON texts. */
function typeOf (texts: readonly string[], depth: number, containers: Containers): string {
  const types = new Set<string>()
  const objects: string[] = []
  const arrays: string[] = []
  for (const text of texts) {
    const first = text.charAt(0)
    if (first === '{') objects.push(text)
    else if (first === '[') arrays.push(text)
    else {
      types.add(
        first === '"' ? 'string' : first === 't' || first === 'f' ? 'boolean' : first === 'n' ? 'null' : 'number'
      )
    }
  }
  if (objects.length > 0) types.add(depth === 0 ? 'object' : typeOfObjects(objects, depth, containers))
  if (arrays.length > 0) {
    const elements = depth === 0 ? [] : arrays.flatMap((text) => elementsOf(text, schemaBounds.inner))
    const type = elements.length === 0 ? 'unknown' : typeOf(elements, depth - 1, containers)
    types.add(type.includes(' | ') ? `(${type})[]` : `${type}[]`)
  }
  return types.size === 0 ? 'unknown' : [...types].join(' | ')
}

function typeOfObjects (objects: readonly string[], depth: number, containers: Containers): string {
  const values = new Map<string, string[]>()
  for (const text of objects) {
    for (const { key, start, end } of containers.members(text)) {
      const known = values.get(key)
      if (known) known.push(text.slice(start, end))
      else if (values.size < schemaBounds.keys) values.set(key, [text.slice(start, end)])
    }
  }
  const parts = [...values].map(([key, texts]) => {
    const name = /^[\w$]+$/.test(key) ? key : JSON.stringify(truncate(key, 60))
    return `${name}${texts.length < objects.length ? '?' : ''}: ${typeOf(texts, depth - 1, containers)}`
  })
  return `{${parts.join(', ')}}`
}
