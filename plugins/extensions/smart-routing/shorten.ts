import { isObject } from '../../../protocol/json.ts'
import { truncate } from '../../../protocol/text.ts'

// Shortens found tools. First it omits what only explains a schema, then the constraints that the server checks itself.

type Json = Record<string, unknown>

/** One level of shortening. Each level also omits what the levels before it omit. */
export interface ShorteningStep {
  /** Max length of a tool's description, and of those within its schema, in characters. */
  readonly description: number
  readonly inner: number
  /** Leaves out titles, examples and comments. */
  readonly plain: boolean
  /** Leaves out formats, patterns, bounds, defaults, and that further members are not allowed. */
  readonly loose: boolean
  /** Max depth of the schema; deeper schemas keep their type only. */
  readonly levels: number
  readonly enums: number
}

export const steps: readonly ShorteningStep[] = [
  { description: Infinity, inner: Infinity, plain: false, loose: false, levels: Infinity, enums: Infinity },
  { description: 300, inner: 120, plain: true, loose: false, levels: Infinity, enums: Infinity },
  { description: 200, inner: 60, plain: true, loose: true, levels: Infinity, enums: Infinity },
  { description: 140, inner: 30, plain: true, loose: true, levels: 4, enums: 20 },
  { description: 100, inner: 0, plain: true, loose: true, levels: 2, enums: 10 },
  { description: 50, inner: 0, plain: true, loose: true, levels: 1, enums: 5 }
]

const annotations =
  new Set(['$schema', '$id', '$comment', 'title', 'examples', 'example', 'deprecated', 'readOnly', 'writeOnly'])
const checks = new Set([
  'format', 'pattern', 'default', 'minLength', 'maxLength', 'minimum', 'maximum', 'exclusiveMinimum',
  'exclusiveMaximum', 'multipleOf',
  'minItems', 'maxItems', 'uniqueItems', 'minProperties', 'maxProperties', 'contentEncoding', 'contentMediaType',
  'propertyNames',
  'patternProperties', 'if', 'then', 'else', 'not', 'dependentRequired', 'dependentSchemas', 'nullable'
])
/** JSON Schema keywords whose value maps names to schemas. */
const byName = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas'])

/** Cuts a text at the end of a word. */
export function shortened (text: string, length: number): string {
  if (text.length <= length) return text
  const part = truncate(text, length)
  const end = part.lastIndexOf(' ')
  return `${end > length / 2 ? part.slice(0, end) : part}…`
}

/** Shortens a schema. */
export function shortSchema (schema: unknown, step: ShorteningStep, level = 0): unknown {
  if (step === steps[0] || !isObject(schema)) return schema
  if (level >= step.levels) {
    const values = enumOf(schema, step)
    // The values of an `enum` imply their type.
    return values.enum || schema.type === undefined ? values : { type: schema.type }
  }
  const entries: Array<[string, unknown]> = []
  for (const [key, value] of Object.entries(schema)) {
    if (step.plain && annotations.has(key)) continue
    if (step.loose && (checks.has(key) || (key === 'additionalProperties' && typeof value === 'boolean'))) continue
    // `properties` implies `type: object`.
    if (Number.isFinite(step.levels) && key === 'type' && value === 'object' && isObject(schema.properties)) continue
    // A limited depth replaces each `$ref` by `type: object`, so no definition is needed.
    if (Number.isFinite(step.levels) && (key === '$defs' || key === 'definitions')) continue
    if (Number.isFinite(step.levels) && key === '$ref') { entries.push(['type', 'object']); continue }
    if (key === 'description') {
      if (typeof value === 'string' && step.inner > 0) entries.push([key, shortened(value, step.inner)])
    } else if (key === 'enum') {
      entries.push(...Object.entries(enumOf(schema, step)))
    } else if (byName.has(key) && isObject(value)) {
      entries.push([
        key, Object.fromEntries(Object.entries(value).map(([name, each]) => [name, shortSchema(each, step, level + 1)]))
      ])
    } else if (Array.isArray(value)) {
      entries.push([key, value.map((each: unknown) => shortSchema(each, step, level + 1))])
    } else {
      entries.push(
        [key, isObject(value) && key !== 'const' && key !== 'default' ? shortSchema(value, step, level + 1) : value]
      )
    }
  }
  return Object.fromEntries(entries)
}

const enumOf = ({ enum: values }: Json, { enums }: ShorteningStep): { enum?: unknown[] } =>
  Array.isArray(values) && values.length <= enums ? { enum: values } : {}
