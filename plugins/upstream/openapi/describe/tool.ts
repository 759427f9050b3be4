import { isObject } from '../../../../protocol/json.ts'
import { truncate } from '../../../../protocol/text.ts'
import {
  relaxSchema, schemaValuedKeywordSet, schemaListKeywordSet, schemaMapKeywordSet, subschemasOf, type JsonSchema
} from './keywords.ts'
import type { SchemaConverter } from './schema.ts'

/** What is needed to create the tool of one operation. */
interface ToolParts {
  method: string
  path: string
  operation: Readonly<Record<string, unknown>>
  /** The schemas of the arguments, by name. */
  properties: ReadonlyArray<readonly [string, JsonSchema]>
  required: readonly string[]
  additionalProperties: JsonSchema | boolean
}

/** Max lengths of the input schema and of the description of one tool, in characters. */
export interface ToolTextLimits { schema: number, description: number }

const maxTitle = 256
const definitionPrefix = '#/$defs/'

/**
 * Creates a tool as in `tools/list`, without its name. The input schema contains only the definitions to which it
 * refers. A schema that exceeds the limit first loses the descriptions below the arguments, then its deepest levels,
 * which are replaced by schemas that accept any value of the same type.
 * @returns a function that returns the tool's JSON text with the name it gets
 * @throws DescriptionError
 */
export function createToolTextWriter (
  { method, path, operation, properties, required, additionalProperties }: ToolParts,
  schemas: SchemaConverter,
  toolLimits: ToolTextLimits
): (name: string) => string {
  const inputSchema = {
    type: 'object',
    properties: Object.fromEntries(properties),
    ...(required.length > 0 ? { required: [...new Set(required)] } : {}),
    additionalProperties
  }
  const title = nonEmptyString(operation.summary)
  const paragraphs =
    new Set([operation.deprecated === true ? 'Deprecated.' : undefined, title, nonEmptyString(operation.description)])
  const description = [...paragraphs].filter((each) => each !== undefined).join('\n\n') || `${method} ${path}`
  const members = [
    ...(title === undefined ? [] : [`"title":${JSON.stringify(truncate(title, maxTitle))}`]),
    `"description":${JSON.stringify(truncate(description, toolLimits.description))}`,
    `"inputSchema":${schemaText(inputSchema, schemas, toolLimits.schema)}`,
    `"annotations":${JSON.stringify(annotationsOf(method))}`
  ].join(',')
  return (name) => `{"name":${JSON.stringify(name)},${members}}`
}

const nonEmptyString = (value: unknown): string | undefined =>
  typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined

/** Returns the tool annotations that follow from the properties of the HTTP method (RFC 9110, section 9.2). */
function annotationsOf (method: string): Record<string, boolean> {
  if (['GET', 'HEAD', 'OPTIONS', 'TRACE'].includes(method)) return { readOnlyHint: true }
  if (method === 'DELETE') return { readOnlyHint: false, destructiveHint: true, idempotentHint: true }
  return method === 'PUT' ? { readOnlyHint: false, idempotentHint: true } : { readOnlyHint: false }
}

/** How much of a schema is kept. */
interface Detail {
  /** Max references that are followed in a row; the definitions at the end of such a chain keep only their type. */
  hops: number
  /** Max levels of each schema; the subschemas below keep their type only. */
  depth: number
  /** Whether descriptions, titles, examples and defaults below the arguments are omitted. */
  isTerse: boolean
}

/** The details to try, from the whole schema to its smallest form. */
const details: readonly Detail[] = [
  { hops: Infinity, depth: Infinity, isTerse: false },
  { hops: Infinity, depth: Infinity, isTerse: true },
  { hops: 6, depth: 8, isTerse: true },
  { hops: 4, depth: 6, isTerse: true },
  { hops: 3, depth: 4, isTerse: true },
  { hops: 2, depth: 3, isTerse: true },
  { hops: 1, depth: 2, isTerse: true },
  { hops: 0, depth: 1, isTerse: true }
]

/** Returns the JSON text of a schema, with as much detail as fits into the max length. */
function schemaText (schema: JsonSchema, schemas: SchemaConverter, maxLength: number): string {
  for (const detail of details) {
    const text = writeSchema(schema, schemas, detail, maxLength)
    if (text !== undefined) return text
  }
  return '{"type":"object"}'
}

/** Returns the JSON text of a schema with its definitions (`$defs`); undefined if it is longer than the max length. */
function writeSchema (
  schema: JsonSchema, schemas: SchemaConverter, detail: Detail, maxLength: number
): string | undefined {
  const { hops, depth, isTerse } = detail
  const isReduced = hops !== Infinity || isTerse
  const root = isReduced ? reduce(schema, { depth: depth + 1, isTerse, keptLevels: 2 }) : schema
  const text = JSON.stringify(root)
  const definitions = new Map<string, string>()
  let size = text.length
  let level: JsonSchema[] = [root]
  for (let hop = 0; level.length > 0; hop++) {
    const names = new Set<string>()
    for (const each of level) collectDefinitionNames(each, names)
    level = []
    for (const name of names) {
      if (definitions.has(name)) continue
      const whole = schemas.definition(name)
      let definition = whole
      if (hop >= hops) definition = typeOnly(whole)
      else if (isReduced) definition = reduce(whole, { depth, isTerse, keptLevels: 0 })
      const definitionText = JSON.stringify(definition)
      size += name.length + definitionText.length + 4
      if (size > maxLength) return undefined
      definitions.set(name, definitionText)
      level.push(definition)
    }
  }
  if (size > maxLength) return undefined
  if (definitions.size === 0) return text
  const members = Array.from(definitions, ([name, definitionText]) => `${JSON.stringify(name)}:${definitionText}`)
  return `${text.slice(0, -1)},"$defs":{${members.join(',')}}}`
}

function collectDefinitionNames (schema: JsonSchema, names: Set<string>): void {
  const { $ref } = schema
  if (typeof $ref === 'string' && $ref.startsWith(definitionPrefix)) names.add($ref.slice(definitionPrefix.length))
  for (const each of subschemasOf(schema)) if (isObject(each)) collectDefinitionNames(each, names)
}

const typeOnly = ({ type }: JsonSchema): JsonSchema => type === undefined ? {} : { type }

/** Keywords that are removed from a terse schema. */
const verboseKeywords = new Set(['description', 'title', 'examples', 'default'])

/**
 * Reduces the subschemas below a depth to their type and, if `isTerse`, removes verbose keywords.
 * @param keptLevels the number of levels, from the top, that keep their verbose keywords
 */
function reduce (
  schema: JsonSchema,
  { depth, isTerse, keptLevels }: { depth: number; isTerse: boolean; keptLevels: number }
): JsonSchema {
  if (depth <= 0) return typeOnly(schema)
  const inner = { depth: depth - 1, isTerse, keptLevels: keptLevels - 1 }
  const reduceInner = (each: unknown): unknown => isObject(each) ? reduce(each, inner) : each
  const members = Object.entries(depth === Infinity ? schema : relaxSchema(schema))
  const kept = isTerse && keptLevels <= 0 ? members.filter(([key]) => !verboseKeywords.has(key)) : members
  return Object.fromEntries(
    kept.map(([key, value]) => {
      if (schemaListKeywordSet.has(key) && Array.isArray(value)) return [key, value.map(reduceInner)]
      if (schemaMapKeywordSet.has(key) && isObject(value)) {
        return [key, Object.fromEntries(Object.entries(value).map(([name, each]) => [name, reduceInner(each)]))]
      }
      return [key, schemaValuedKeywordSet.has(key) ? reduceInner(value) : value]
    })
  )
}
