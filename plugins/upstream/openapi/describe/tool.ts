import { isObject } from '../../../../protocol/json.ts'
import { cut } from '../../../../protocol/text.ts'
import { schemaListKeywordSet, schemaMapKeywordSet, subschemasOf, schemaKeywordSet, relaxed, type JsonSchema } from './keywords.ts'
import type { SchemaConverter } from './schema.ts'

/** What a tool shows of an operation. */
export interface ToolParts {
  method: string
  path: string
  operation: Readonly<Record<string, unknown>>
  properties: ReadonlyArray<readonly [string, JsonSchema]>
  required: readonly string[]
  /** The schema of arguments that have no name; false: there are none. */
  open: JsonSchema | boolean
}

/** Bounds of one tool's text, in characters. */
export interface ToolLimits { schema: number, description: number }

const prefix = '#/$defs/'

/**
 * A tool as the text that `tools/list` shows, once it has a name. Its schema carries the definitions that it needs, and no others. A schema over the
 * bound loses descriptions below the arguments first, then what lies deepest: what is left out there admits any value of its type.
 * @throws DescriptionError
 */
export function toolText (
  { method, path, operation, properties, required, open }: ToolParts,
  schemas: SchemaConverter,
  bounds: ToolLimits
): (name: string) => string {
  const inputSchema = {
    type: 'object',
    properties: Object.fromEntries(properties),
    ...(required.length > 0 ? { required: [...new Set(required)] } : {}),
    additionalProperties: open
  }
  const title = textOf(operation.summary)
  const said = [operation.deprecated === true ? 'Deprecated.' : undefined, title, textOf(operation.description)]
    .filter((each, at, all) => each !== undefined && all.indexOf(each) === at)
    .join('\n\n')
  const rest =
    `${title === undefined ? '' : `,"title":${JSON.stringify(cut(title, 256))}`},"description":${JSON.stringify(cut(said === '' ? `${method} ${path}` : said, bounds.description))},` +
    `"inputSchema":${schemaText(inputSchema, schemas, bounds.schema)},"annotations":${JSON.stringify(annotationsOf(method))}}`
  return (name) => `{"name":${JSON.stringify(name)}${rest}`
}

const textOf = (value: unknown): string | undefined => typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined

/** What the method promises (RFC 9110, 9.2). */
function annotationsOf (method: string): Record<string, boolean> {
  if (['GET', 'HEAD', 'OPTIONS', 'TRACE'].includes(method)) return { readOnlyHint: true }
  if (method === 'DELETE') return { readOnlyHint: false, destructiveHint: true, idempotentHint: true }
  return method === 'PUT' ? { readOnlyHint: false, idempotentHint: true } : { readOnlyHint: false }
}

function schemaText (schema: JsonSchema, schemas: SchemaConverter, bound: number): string {
  // Deep enough for all; where that is too large, less and less.
  for (const [hops, depth, terse] of [
    [Infinity, Infinity, false],
    [Infinity, Infinity, true],
    [6, 8, true],
    [4, 6, true],
    [3, 4, true],
    [2, 3, true],
    [1, 2, true],
    [0, 1, true]
  ] as const) {
    const text = render(schema, schemas, { hops, depth, terse, bound })
    if (text !== undefined) return text
  }
  return '{"type":"object"}'
}

/** The schema with its definitions as text; undefined when it is longer than the bound. */
function render (
  schema: JsonSchema,
  schemas: SchemaConverter,
  { hops, depth, terse, bound }: { hops: number; depth: number; terse: boolean; bound: number }
): string | undefined {
  const definitions = new Map<string, string>()
  const slim = hops !== Infinity || terse
  let size = 0
  let level: JsonSchema[] = [slim ? slimmed(schema, { depth: depth + 1, terse, top: 2 }) : schema]
  const [root] = level
  const text = JSON.stringify(root)
  size += text.length
  for (let hop = 0; level.length > 0; hop++) {
    const found = new Set<string>()
    for (const each of level) collect(each, found)
    level = []
    for (const name of found) {
      if (definitions.has(name)) continue
      const whole = schemas.definition(name)
      const definition = hop >= hops ? typeOnly(whole) : slim ? slimmed(whole, { depth, terse, top: 0 }) : whole
      const written = JSON.stringify(definition)
      size += name.length + written.length + 4
      if (size > bound) return undefined
      definitions.set(name, written)
      level.push(definition)
    }
  }
  if (size > bound) return undefined
  return definitions.size === 0
    ? text
    : `${text.slice(0, -1)},"$defs":{${[...definitions].map(([name, written]) => `${JSON.stringify(name)}:${written}`).join(',')}}}`
}

/** The names of the definitions that a schema refers to. */
function collect (schema: JsonSchema, found: Set<string>): void {
  if (typeof schema.$ref === 'string' && schema.$ref.startsWith(prefix)) found.add(schema.$ref.slice(prefix.length))
  for (const each of subschemasOf(schema)) if (isObject(each)) collect(each, found)
}

const typeOnly = ({ type }: JsonSchema): JsonSchema => type === undefined ? {} : { type }

const spoken = new Set(['description', 'title', 'examples', 'default'])

/** The schema without what it says in words (below the first `top` levels), and cut off at a depth. */
function slimmed (schema: JsonSchema, { depth, terse, top }: { depth: number, terse: boolean, top: number }): JsonSchema {
  if (depth <= 0) return typeOnly(schema)
  const inner = { depth: depth - 1, terse, top: top - 1 }
  const one = (each: unknown): unknown => isObject(each) ? slimmed(each, inner) : each
  return Object.fromEntries(
    Object.entries(depth === Infinity ? schema : relaxed(schema))
      .filter(([key]) => !(terse && top <= 0 && spoken.has(key)))
      .map(([key, each]) => {
        if (schemaListKeywordSet.has(key) && Array.isArray(each)) return [key, each.map(one)]
        if (schemaMapKeywordSet.has(key) && isObject(each)) {
          return [key, Object.fromEntries(Object.entries(each).map(([name, member]) => [name, one(member)]))]
        }
        return [key, schemaKeywordSet.has(key) ? one(each) : each]
      })
  )
}
