import { isObject } from '../../../../protocol/json.ts'

/** A text of a definition, with its place as a JSON pointer. */
export interface PlacedText {
  readonly place: string
  readonly text: string
  /** Whether it is in a schema, and so filled in or followed by the model. */
  readonly isInSchema: boolean
}

/** Max depth to which a definition is searched. */
const maxDepth = 40
/** Members that are no text for the model: images, and the addresses of schemas. */
const skipped: ReadonlySet<string> = new Set(['icons', '$schema', '$id', '$ref'])

/** All texts of a definition: its strings, and the names of its members. */
export function textsOf (definition: unknown, place = '', isInSchema = false, depth = 0): PlacedText[] {
  if (typeof definition === 'string') return [{ place, text: definition, isInSchema }]
  if (depth > maxDepth) return []
  if (Array.isArray(definition)) {
    return definition.flatMap((each, at) => textsOf(each, `${place}/${at}`, isInSchema, depth + 1))
  }
  if (!isObject(definition)) return []
  return Object.entries(definition).flatMap(([name, value]) => {
    if (skipped.has(name)) return []
    const at = `${place}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
    const isSchema = isInSchema || name === 'inputSchema' || name === 'outputSchema' || name === 'arguments'
    const own = isInSchema ? [{ place: at, text: name, isInSchema }] : []
    return [...own, ...textsOf(value, at, isSchema, depth + 1)]
  })
}
