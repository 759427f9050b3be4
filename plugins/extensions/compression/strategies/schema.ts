import { truncate } from '../../../../protocol/text.ts'
import type { Containers } from './containers.ts'

/** How many items are looked at, also of those within items, how many keys are told, and how deep. */
const bounds = { items: 20_000, inner: 5, keys: 30, depth: 3, characters: 600 }

/** The type of an array's items, in TypeScript notation: `{id: number, name?: string, tags: string[]}`. */
export interface Schema {
  readonly type: string
  /** All items were looked at. False: of a long array one in some, and others may be of other types. */
  readonly isOfAll: boolean
}

/**
 * The type of the items of an array.
 * @throws TooCostly
 */
export function schemaOf (array: string, containers: Containers): Schema {
  const { count, at } = containers.elements(array)
  // Odd, so that it does not meet every other item only.
  const step = count <= bounds.items ? 1 : Math.ceil(count / bounds.items) | 1
  const sample: string[] = []
  for (let index = 0; index < count; index += step) sample.push(at(index))
  const type = typeOf(sample, bounds.depth, containers)
  return { type: type.length <= bounds.characters ? type : `${truncate(type, bounds.characters)}…`, isOfAll: step === 1 }
}

function typeOf (texts: readonly string[], depth: number, containers: Containers): string {
  const types = new Set<string>()
  const objects: string[] = []
  const arrays: string[] = []
  for (const text of texts) {
    const first = text.charAt(0)
    if (first === '{') objects.push(text)
    else if (first === '[') arrays.push(text)
    else types.add(first === '"' ? 'string' : first === 't' || first === 'f' ? 'boolean' : first === 'n' ? 'null' : 'number')
  }
  if (objects.length > 0) types.add(depth === 0 ? 'object' : typeOfObjects(objects, depth, containers))
  if (arrays.length > 0) {
    const elements = depth === 0 ? [] : arrays.flatMap((text) => firstOf(text, containers))
    const type = elements.length === 0 ? 'unknown' : typeOf(elements, depth - 1, containers)
    types.add(type.includes(' | ') ? `(${type})[]` : `${type}[]`)
  }
  return types.size === 0 ? 'unknown' : [...types].join(' | ')
}

/** The first elements of an array. */
function firstOf (array: string, containers: Containers): string[] {
  const { count, at } = containers.elements(array)
  return Array.from({ length: Math.min(count, bounds.inner) }, (_, index) => at(index))
}

function typeOfObjects (objects: readonly string[], depth: number, containers: Containers): string {
  const values = new Map<string, string[]>()
  for (const text of objects) {
    for (const { key, start, end } of containers.members(text).first) {
      const known = values.get(key)
      if (known) known.push(text.slice(start, end))
      else if (values.size < bounds.keys) values.set(key, [text.slice(start, end)])
    }
  }
  const parts = [...values].map(([key, texts]) => {
    const name = /^[\w$]+$/.test(key) ? key : JSON.stringify(truncate(key, 60))
    return `${name}${texts.length < objects.length ? '?' : ''}: ${typeOf(texts, depth - 1, containers)}`
  })
  return `{${parts.join(', ')}}`
}
