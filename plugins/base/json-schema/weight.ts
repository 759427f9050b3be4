// Bounds the cost of validation by a look at the schema, for schemas whose cost is linear in the size of the value.
import { isObject } from '../../../protocol/json.ts'
import { limits } from '../limits/index.ts'
import { resolvePointer } from './json-pointer.ts'

/** Keywords that the validator ignores. */
const ignored = [
  'title', 'description', 'default', 'examples', 'deprecated', 'readOnly', 'writeOnly', '$comment', 'format', 'contentEncoding',
  'contentMediaType', '$defs', 'definitions', '$schema'
]
/** Keywords that cost the same for every value. */
const constant = [
  'type', 'nullable', 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf', 'minLength', 'maxLength', 'minItems',
  'maxItems', 'minProperties', 'maxProperties'
]
/** Keywords that `weigh` takes into account. */
const weighed = [
  'properties', 'required', 'additionalProperties', 'items', 'prefixItems', 'enum', 'const', 'pattern', '$ref', 'allOf', 'anyOf', 'oneOf'
]
const known = new Set([...ignored, ...constant, ...weighed])

const isKnown = (keyword: string): boolean => known.has(keyword) || keyword.startsWith('x-')

/** An escape of a class or of a character that means something in patterns. */
const escape = String.raw`\\[dwsDWS.\\/+*?()[\]{}|^$-]`
/** A character, an escape, or a class of both. */
const unit = String.raw`(?:[\w @#%&=,;:!~"'<>/.-]|${escape}|\[\^?(?:[^\\[\]]|${escape})+\])`
/** A sequence of units from the start of the text. */
const sequence = new RegExp(String.raw`^\^(?:${unit}(?:[*+?]|\{\d{1,2}\})?)*\$?$`)
const quantified = new RegExp(String.raw`${unit}([*+?]|\{\d{1,2}\})?`, 'g')
/** Max length of a pattern that is looked at, in characters. */
const maxPattern = 200

/**
 * The weight of a pattern; Infinity for one that may take more than linear time. With one quantifier at most that is no fixed count, and
 * neither groups nor alternatives, each character of the text is where the rest of the pattern is tried at most once.
 */
function weighPattern (pattern: string): number {
  if (pattern.length > maxPattern || !sequence.test(pattern)) return Infinity
  const quantifiers = [...pattern.slice(1).matchAll(quantified)].flatMap(([, quantifier]) => quantifier ?? [])
  const counts = quantifiers.filter((each) => each.startsWith('{')).map((each) => Number(each.slice(1, -1)))
  if (quantifiers.length - counts.length > 1) return Infinity
  return counts.reduce((sum, count) => sum + count, pattern.length)
}

/**
 * The weight of a schema: validating a value takes at most `weight × sizeOf(value)` steps, each of which takes well below a microsecond.
 * One look at each part of the schema, however often it is referred to.
 *
 * A part of an object or array is validated by one subschema for each schema that its parent is validated by. So a schema weighs its own
 * keywords or the heaviest subschema of its parts, whichever is more, and in addition all schemas that it applies to the value itself.
 * @returns undefined where the cost cannot be bounded so: a reference to itself, a pattern that may backtrack, a keyword that compares
 * parts with each other, or any keyword that is not known here
 */
export function schemaWeight (schema: unknown): number | undefined {
  const weight = weigh(schema, { root: schema, weights: new Map() }, 0)
  return Number.isFinite(weight) ? weight : undefined
}

interface Weighing {
  readonly root: unknown
  /** By schema; Infinity while it is being weighed, so that a reference to itself is infinite, too. */
  readonly weights: Map<unknown, number>
}

function weigh (schema: unknown, weighing: Weighing, depth: number): number {
  if (typeof schema === 'boolean') return 1
  if (!isObject(schema) || depth > limits.untimedChecks.depth) return Infinity
  const cached = weighing.weights.get(schema)
  if (cached !== undefined) return cached
  weighing.weights.set(schema, Infinity)
  const weight = weighKeywords(schema, weighing, depth)
  weighing.weights.set(schema, weight)
  return weight
}

function weighKeywords (schema: Record<string, unknown>, weighing: Weighing, depth: number): number {
  const { root } = weighing
  const keywords = Object.keys(schema)
  if (!keywords.every(isKnown) || ('$schema' in schema && schema !== root)) return Infinity
  const { properties, required, additionalProperties, items, prefixItems, $ref } = schema
  const own = keywords.length + countOf(properties) + countOf(required) + countOf(prefixItems) + weighValues(schema)
  let weight = own
  for (const part of [properties, prefixItems].flatMap(valuesOf)) weight = Math.max(weight, weigh(part, weighing, depth + 1))
  for (const part of [additionalProperties, items].flat()) weight = Math.max(weight, weigh(part ?? true, weighing, depth + 1))
  for (const combined of [schema.allOf, schema.anyOf, schema.oneOf]) {
    if (combined !== undefined && !Array.isArray(combined)) return Infinity
    for (const each of combined ?? []) weight += weigh(each, weighing, depth + 1)
  }
  if ($ref === undefined) return weight
  // Other references may lead through an `$id`, to an `$anchor`, or into another document.
  if (typeof $ref !== 'string' || !/^#\/(?:\$defs|definitions)\/[\w.-]+$/.test($ref)) return Infinity
  return weight + weigh(resolvePointer(root, $ref), weighing, depth + 1)
}

/** The weight of `enum`, `const` and `pattern`. Only scalars are compared in one step. */
function weighValues ({ enum: choices = [], const: only, pattern }: Record<string, unknown>): number {
  if (!Array.isArray(choices) || [...choices, only].some((each) => typeof each === 'object' && each !== null)) return Infinity
  if (pattern === undefined) return choices.length
  return typeof pattern === 'string' ? choices.length + weighPattern(pattern) : Infinity
}

const countOf = (value: unknown): number => valuesOf(value).length

function valuesOf (value: unknown): unknown[] {
  if (Array.isArray(value)) return value
  return isObject(value) ? Object.values(value) : []
}

/**
 * The size of a JSON value: its values, and the length of its texts and names. The count stops above `max`.
 * @param charactersPerStep the characters of a text that count as much as one value
 */
export function valueSize (value: unknown, max: number, charactersPerStep = 64): number {
  if (typeof value === 'string') return 1 + value.length / charactersPerStep
  let size = 1
  if (typeof value !== 'object' || value === null) return size
  if (Array.isArray(value)) {
    for (const each of value) {
      if (size > max) break
      size += valueSize(each, max - size, charactersPerStep)
    }
    return size
  }
  for (const name in value) {
    if (size > max) break
    size += name.length / charactersPerStep + valueSize((value as Record<string, unknown>)[name], max - size, charactersPerStep)
  }
  return size
}
