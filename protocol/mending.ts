// Repairs messages from servers. Many languages write an absent member as `null`, and PHP writes an empty object as
// `[]`. MCP and JSON Schema allow neither in most places, and strict clients reject a whole list, result or connection
// because of one. Values of a wrong type and missing required members are repaired, too.
import { elementsOf, membersOf } from './json.ts'
import { truncate } from './text.ts'
import type { Shape, JsonType } from './shapes/shape.ts'

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
 * adds required members. Everything else keeps its bytes, except for the space between the members of a repaired object
 * and the elements of a repaired list.
 * @param isChecked whether a text without `null` and `[]` is scanned, too; otherwise it is returned as it is
 */
export function mend (text: string, shape: Shape, isChecked = false): MendResult {
  if (!isChecked && !mayNeedMending(text)) return { text, places: [] }
  const mender = new Mender()
  const whole = text.trim()
  const mended = mender.mended(whole, shape, '')
  if (mended === undefined && shape.fallback === undefined) return { text, places: [] }
  return { text: mended === whole ? text : mended ?? fallbackOf(shape), places: mender.places }
}

/** Describes the repairs for a log line. @param places as in `MendResult` */
export function describeMended (places: readonly string[]): string {
  const where = places.map((place) => place === '' ? 'the whole' : JSON.stringify(place)).join(', ')
  return `null, [] for an object, or a value of another type is treated as absent (${where})`
}

/**
 * Max work for one text, in characters; the rest of the text, and an object or a list with more values than the rest of
 * the work allows, are left unchanged. An object or a list is read once for each level above it, and takes `valueWork`
 * for each value in it.
 */
const maxWork = 64 * 1024 * 1024
const valueWork = 2 * 1024
/** Max paths in a report. */
const maxPlaces = 3
/** Max characters of a path. */
const maxPath = 100

type TextOf = (key: string) => string | undefined
const hasFallback = (shape: Shape | undefined, textOf: TextOf): shape is Shape =>
  shape?.fallback !== undefined && shape.isNeeded?.((key) => parseOptional(textOf(key))) !== false
const parseOptional = (text: string | undefined): unknown => text === undefined ? undefined : JSON.parse(text)
const fallbackOf = ({ fallback = 'null' }: Shape, textOf: TextOf = () => undefined): string =>
  typeof fallback === 'string' ? fallback : fallback(textOf)

const types: Readonly<Record<string, JsonType>> =
  { '{': 'object', '[': 'list', '"': 'string', t: 'boolean', f: 'boolean' }
const isOfType = (text: string, { type, values }: Shape): boolean =>
  (type === undefined || (types[text.charAt(0)] ?? 'number') === type) && values?.includes(text) !== false
const emptyList = /^\[\s*\]$/
const memberPath = (path: string, key: string): string => path === '' ? key : `${path}.${key}`

/** Repairs a value and all values in it. */
class Mender {
  readonly places: string[] = []
  #work = maxWork

  /** @returns the same text if it needs no repair; undefined if the value is `null`, or is to be treated as `null` */
  mended (text: string, given: Shape, path: string): string | undefined {
    if ((this.#work -= valueWork) < 0) return text
    const shape = given.select?.(text) ?? given
    if (text === 'null') return this.#record(path)
    if (shape.isObject === true && emptyList.test(text)) {
      this.#record(path)
      return shape.required === undefined ? '{}' : mend('{}', shape, true).text
    }
    if (!isOfType(text, shape)) {
      this.#record(path)
      return shape.coerce?.(text)
    }
    if (text.startsWith('{') && (shape.members ?? shape.each)) return this.#object(text, shape, path)
    return text.startsWith('[') && shape.element ? this.#list(text, shape.element, path) : text
  }

  #object (text: string, { members, each, needs, required = [] }: Shape, path: string): string | undefined {
    if ((this.#work -= text.length) < 0) return text
    const placeCount = this.places.length
    const max = this.#maxValues
    const written = membersOf(text, max + 1)
    if (written.length > max) return text
    const parts = written.map(({ key, keyStart, start, end }) => {
      const shape = members && Object.hasOwn(members, key) ? members[key] : each
      const value = text.slice(start, end)
      const mended = shape ? this.mended(value, shape, memberPath(path, key)) : value
      return { key, keyStart, start, value, shape, mended }
    })
    if (needs !== undefined && parts.some(({ key, mended }) => key === needs && mended === undefined)) {
      this.places.length = Math.min(this.places.length, placeCount + 1)
      return undefined
    }
    const textOf: TextOf = (key) => {
      const part = parts.findLast((other) => other.key === key)
      return part?.mended === undefined ? undefined : part.value
    }
    const added = required.flatMap((key) => {
      const shape = members?.[key]
      if (parts.some((part) => part.key === key) || !hasFallback(shape, textOf)) return []
      this.#record(memberPath(path, `${key} (missing)`))
      return [`${JSON.stringify(key)}:${fallbackOf(shape, textOf)}`]
    })
    if (added.length === 0 && parts.every(({ value, mended }) => mended === value)) return text
    const counts = new Map<string, number>()
    for (const { key } of parts) counts.set(key, (counts.get(key) ?? 0) + 1)
    const kept = parts.flatMap(({ key, keyStart, start, value, shape, mended }) => {
      const name = text.slice(keyStart, start)
      if (mended !== undefined) return [name + mended]
      // Parsers differ in which of two duplicate members they read, so both stay, even if one is null.
      if (counts.get(key) !== 1) return [name + value]
      return hasFallback(shape, textOf) ? [name + fallbackOf(shape, textOf)] : []
    })
    return `{${[...added, ...kept].join()}}`
  }

  #list (text: string, shape: Shape, path: string): string {
    if ((this.#work -= text.length) < 0) return text
    const max = this.#maxValues
    const elements = elementsOf(text, max + 1)
    if (elements.length > max) return text
    const mended = elements.map((each, index) => this.mended(each, shape, `${path}[${index}]`))
    if (mended.every((each, index) => each === elements[index])) return text
    return `[${mended.flatMap((each) => each ?? (shape.fallback === undefined ? [] : fallbackOf(shape))).join()}]`
  }

  get #maxValues (): number { return Math.floor(this.#work / valueWork) }

  /** Records that the value at a path was repaired. */
  #record (path: string): undefined {
    if (this.places.length < maxPlaces) this.places.push(truncate(path, maxPath))
  }
}
