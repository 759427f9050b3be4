import { isObject } from '../../../protocol/json.ts'
import { truncate } from '../../../protocol/text.ts'

// Found tools with less text. What is left out first explains a schema and decides nothing; then what the server checks
// itself.

type Json = Record<string, unknown>

/** One step of leaving out. Each leaves out what those before it do. */
export interface ShorteningStep {
  /** Max length of a tool's description, and of those within its schema, in characters. */
  readonly description: number
  readonly inner: number
  /** Leaves out titles, examples and comments. */
  readonly plain: boolean
  /** Leaves out formats, patterns, bounds, defaults, and that further members are not allowed. */
  readonly loose: boolean
  /** Keeps so many levels of the schema; what is below has a type only. */
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
/** Keywords whose members are schemas by names of others. */
const byName = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas'])

/** A text cut between two words. */
export function shortened (text: string, length: number): string {
  if (text.length <= length) return text
  const part = truncate(text, length)
  const end = part.lastIndexOf(' ')
  return `${end > length / 2 ? part.slice(0, end) : part}…`
}

/** A schema with less text. */
export function shortSchema (schema: unknown, step: ShorteningStep, level = 0): unknown {
  if (step === steps[0] || !isObject(schema)) return schema
  if (level >= step.levels) {
    const values = enumOf(schema, step)
    // Values tell their type.
    return values.enum || schema.type === undefined ? values : { type: schema.type }
  }
  const entries: Array<[string, unknown]> = []
  for (const [key, value] of Object.entries(schema)) {
    if (step.plain && annotations.has(key)) continue
    if (step.loose && (checks.has(key) || (key === 'additionalProperties' && typeof value === 'boolean'))) continue
    // What has properties is an object.
    if (Number.isFinite(step.levels) && key === 'type' && value === 'object' && isObject(schema.properties)) continue
    // Definitions are of use only where all references to them are kept.
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
