import { elementsOf, membersOf } from '../../../protocol/json.ts'
import { cut } from '../../../protocol/text.ts'

/** How many items are looked at, how many keys are told, and how deep. */
const bounds = { items: 50, keys: 30, depth: 3, characters: 600 }

/** What the items of an array look like, in the notation of TypeScript: `{id: number, name?: string, tags: string[]}`. */
export function schemaOf (elements: readonly string[]): string {
  // Odd, so that it does not meet every other item only.
  const step = Math.floor(elements.length / bounds.items) | 1
  const sample = elements.filter((_, index) => index % step === 0)
  const schema = typeOf(sample, bounds.depth)
  return schema.length <= bounds.characters ? schema : `${cut(schema, bounds.characters)}…`
}

function typeOf (texts: readonly string[], depth: number): string {
  const types = new Set<string>()
  const objects: string[] = []
  const arrays: string[] = []
  for (const text of texts) {
    const first = text.charAt(0)
    if (first === '{') objects.push(text)
    else if (first === '[') arrays.push(text)
    else types.add(first === '"' ? 'string' : first === 't' || first === 'f' ? 'boolean' : first === 'n' ? 'null' : 'number')
  }
  if (objects.length > 0) types.add(depth === 0 ? 'object' : typeOfObjects(objects, depth))
  if (arrays.length > 0) {
    const elements = depth === 0 ? [] : arrays.flatMap((text) => elementsOf(text).slice(0, 5))
    const type = elements.length === 0 ? 'unknown' : typeOf(elements, depth - 1)
    types.add(type.includes(' | ') ? `(${type})[]` : `${type}[]`)
  }
  return types.size === 0 ? 'unknown' : [...types].join(' | ')
}

function typeOfObjects (objects: readonly string[], depth: number): string {
  const values = new Map<string, string[]>()
  for (const text of objects) {
    for (const { key, start, end } of membersOf(text)) {
      const known = values.get(key)
      if (known) known.push(text.slice(start, end))
      else if (values.size < bounds.keys) values.set(key, [text.slice(start, end)])
    }
  }
  const parts = [...values].map(([key, texts]) => {
    const name = /^[\w$]+$/.test(key) ? key : JSON.stringify(cut(key, 60))
    return `${name}${texts.length < objects.length ? '?' : ''}: ${typeOf(texts, depth - 1)}`
  })
  return `{${parts.join(', ')}}`
}
