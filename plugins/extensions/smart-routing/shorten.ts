import { isObject } from '../../../protocol/json.ts'
import { truncate } from '../../../protocol/text.ts'

// Shortens the tools in search results. Members that only explain a schema are omitted first, then constraints, which
// the server checks anyway.

type Json = Record<string, unknown>

/** One level of shortening. Each level also omits what the previous levels omit. */
export interface ShorteningStep {
  /** Max length of the tool's description, in characters. */
  readonly maxDescription: number
  /** Max length of a description within the schema, in characters; 0: these descriptions are omitted. */
  readonly maxInnerDescription: number
  /** Whether titles, examples and comments are omitted. */
  readonly omitsAnnotations: boolean
  /** Whether formats, patterns, bounds, defaults, conditions and a boolean `additionalProperties` are omitted. */
  readonly omitsConstraints: boolean
  /** Max depth of the schema; deeper schemas keep only their type or `enum`. */
  readonly maxDepth: number
  /** Max number of values of an `enum`; a longer `enum` is omitted. */
  readonly maxEnumValues: number
}

/** The levels of shortening; the first one changes nothing. */
export const shorteningSteps: readonly ShorteningStep[] = [
  {
    maxDescription: Infinity,
    maxInnerDescription: Infinity,
    omitsAnnotations: false,
    omitsConstraints: false,
    maxDepth: Infinity,
    maxEnumValues: Infinity
  },
  {
    maxDescription: 300,
    maxInnerDescription: 120,
    omitsAnnotations: true,
    omitsConstraints: false,
    maxDepth: Infinity,
    maxEnumValues: Infinity
  },
  {
    maxDescription: 200,
    maxInnerDescription: 60,
    omitsAnnotations: true,
    omitsConstraints: true,
    maxDepth: Infinity,
    maxEnumValues: Infinity
  },
  {
    maxDescription: 140,
    maxInnerDescription: 30,
    omitsAnnotations: true,
    omitsConstraints: true,
    maxDepth: 4,
    maxEnumValues: 20
  },
  {
    maxDescription: 100,
    maxInnerDescription: 0,
    omitsAnnotations: true,
    omitsConstraints: true,
    maxDepth: 2,
    maxEnumValues: 10
  },
  {
    maxDescription: 50,
    maxInnerDescription: 0,
    omitsAnnotations: true,
    omitsConstraints: true,
    maxDepth: 1,
    maxEnumValues: 5
  }
]

const annotations =
  new Set(['$schema', '$id', '$comment', 'title', 'examples', 'example', 'deprecated', 'readOnly', 'writeOnly'])
const constraintNames = new Set([
  'format', 'pattern', 'default', 'minLength', 'maxLength', 'minimum', 'maximum', 'exclusiveMinimum',
  'exclusiveMaximum', 'multipleOf',
  'minItems', 'maxItems', 'uniqueItems', 'minProperties', 'maxProperties', 'contentEncoding', 'contentMediaType',
  'propertyNames',
  'patternProperties', 'if', 'then', 'else', 'not', 'dependentRequired', 'dependentSchemas', 'nullable'
])
/** JSON Schema keywords whose value maps names to schemas. */
const namedSchemaKeywords = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas'])

/** Truncates a text to `length` characters, if possible at the end of a word, and appends `…`. */
export function truncateAtWord (text: string, length: number): string {
  if (text.length <= length) return text
  const part = truncate(text, length)
  const end = part.lastIndexOf(' ')
  return `${end > length / 2 ? part.slice(0, end) : part}…`
}

/** Shortens a JSON Schema. @param level the depth of this schema within the tool's input schema */
export function shortenSchema (schema: unknown, step: ShorteningStep, level = 0): unknown {
  if (step === shorteningSteps[0] || !isObject(schema)) return schema
  if (level >= step.maxDepth) {
    const values = enumOf(schema, step)
    // The values of an `enum` imply their type.
    return values.enum || schema.type === undefined ? values : { type: schema.type }
  }
  const entries: Array<[string, unknown]> = []
  for (const [key, value] of Object.entries(schema)) {
    if (step.omitsAnnotations && annotations.has(key)) continue
    if (step.omitsConstraints && (constraintNames.has(
      key
    ) || (key === 'additionalProperties' && typeof value === 'boolean'))) continue
    // `properties` implies `type: object`.
    if (Number.isFinite(step.maxDepth) && key === 'type' && value === 'object' && isObject(schema.properties)) continue
    // A limited depth replaces each `$ref` by `type: object`, so no definition is needed.
    if (Number.isFinite(step.maxDepth) && (key === '$defs' || key === 'definitions')) continue
    if (Number.isFinite(step.maxDepth) && key === '$ref') { entries.push(['type', 'object']); continue }
    if (key === 'description') {
      if (typeof value === 'string' && step.maxInnerDescription > 0) {
        entries.push([key, truncateAtWord(value, step.maxInnerDescription)])
      }
    } else if (key === 'enum') {
      entries.push(...Object.entries(enumOf(schema, step)))
    } else if (namedSchemaKeywords.has(key) && isObject(value)) {
      entries.push([
        key, Object.fromEntries(Object.entries(value).map(([name, each]) =>
          [name, shortenSchema(each, step, level + 1)]))
      ])
    } else if (Array.isArray(value)) {
      entries.push([key, value.map((each: unknown) => shortenSchema(each, step, level + 1))])
    } else {
      entries.push(
        [key, isObject(value) && key !== 'const' && key !== 'default' ? shortenSchema(value, step, level + 1) : value]
      )
    }
  }
  return Object.fromEntries(entries)
}

const enumOf = ({ enum: values }: Json, { maxEnumValues: enums }: ShorteningStep): { enum?: unknown[] } =>
  Array.isArray(values) && values.length <= enums ? { enum: values } : {}
