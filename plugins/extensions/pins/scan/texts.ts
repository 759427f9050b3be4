import { isObject } from '../../../../protocol/json.ts'

/** A text of a definition. `place`: a JSON pointer into the definition. */
interface PlacedText {
  readonly place: string
  readonly text: string
  /** Whether the text is in a schema, or in the arguments of a prompt. The model follows texts in these places. */
  readonly isInSchema: boolean
}

/** Max depth of nested objects and arrays; deeper texts are not returned. */
const maxDepth = 40
/** The names of members that are not texts for the model: images, and URLs of schemas. */
const skipped: ReadonlySet<string> = new Set(['icons', '$schema', '$id', '$ref'])

/** Returns the texts of a definition: its strings, and in schemas also the names of members. */
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
