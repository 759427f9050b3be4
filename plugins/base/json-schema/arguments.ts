import { isDeeperThan, isObject } from '../../../protocol/json.ts'
import { inputShapeOf } from './input-shape.ts'
import { findInexactNumber, isDecimal, isWholeNumber } from './numbers.ts'
import { resolveRef } from './json-pointer.ts'
import { mayAcceptValue, typesOf, type SchemaType } from './schema-types.ts'
import { baseLimits } from '../limits/index.ts'

/**
 * Converts arguments that a caller wrote as text to the types of a tool's input schema: `null`; numbers that a double
 * represents exactly; booleans from `true`, `false`, `1` and `0`; arrays from repeated or comma-separated values;
 * objects and arrays from JSON. A text that cannot be converted is unchanged, so that validation reports it.
 * @param eager whether to convert a text even if the schema accepts it as a string
 */
export function convertArguments (
  schema: unknown, args: Readonly<Record<string, unknown>>, eager = false
): Record<string, unknown> {
  const { properties, additional } = inputShapeOf(schema)
  const context: ConversionContext = {
    root: schema, eager, isElement: false, failures: { left: maxFailures }, elements: new Map()
  }
  return Object.fromEntries(
    Object.entries(args).map(
      ([name, value]) => [name, convert(properties.has(name) ? properties.get(name) : additional, value, context)]
    )
  )
}

/** The order in which types are tried, the most specific first. Numbers precede booleans, since both accept 1 and 0. */
const conversionOrder: readonly SchemaType[] = ['null', 'integer', 'number', 'boolean', 'object', 'array']

/**
 * Max number of texts that may fail to parse as JSON, since exceptions are expensive. After that, no text is parsed.
 */
const maxFailures = 1_000

interface ConversionContext {
  /** The schema in which references are resolved. */
  readonly root: unknown
  readonly eager: boolean
  /** Whether the text is an element of a comma-separated list, in which further commas do not create an array. */
  readonly isElement: boolean
  /** The number of further texts that may fail to parse as JSON. */
  readonly failures: { left: number }
  /** Cache of the results of `elementSchemas`, by the schema of the array. */
  readonly elements: Map<unknown, ElementSchemas>
}

/** Returns the schema of the element at an index. */
type ElementSchemas = (index: number) => unknown

function convert (schema: unknown, value: unknown, context: ConversionContext): unknown {
  const { root, eager } = context
  if (Array.isArray(value)) {
    // An array without texts and without non-empty arrays as elements is not copied.
    if (!value.some(isConvertible)) return value
    const schemaAt = elementsOf(schema, context)
    return value.map((each, index) => isConvertible(each) ? convert(schemaAt(index), each, context) : each as unknown)
  }
  if (typeof value !== 'string') return value
  const acceptsString = mayAcceptValue(schema, value, root)
  if (acceptsString && !eager) return value
  const types = typesOf(schema, root)
  const candidates: unknown[] = []
  for (const type of conversionOrder) {
    const converted = types.includes(type) ? toType(type, value, schema, context) : undefined
    if (converted !== undefined) candidates.push(converted)
  }
  const accepted = candidates.find((each) => mayAcceptValue(schema, each, root))
  if (accepted !== undefined) return accepted
  if (acceptsString || candidates.length === 0) return value
  // The schema accepts no candidate. One of the right type gets a more specific validation error than the text.
  return candidates[0]
}

const isConvertible = (value: unknown): boolean =>
  typeof value === 'string' || (Array.isArray(value) && value.length > 0)

function toType (type: SchemaType, text: string, schema: unknown, context: ConversionContext): unknown {
  switch (type) {
    case 'integer': return isDecimal(text) && isWholeNumber(text) && Number.isSafeInteger(Number(text))
      ? Number(text)
      : undefined
    case 'number': return isDecimal(text) && findInexactNumber(text) === undefined ? Number(text) : undefined
    case 'boolean': return toBoolean(text)
    case 'null': return text === 'null' ? null : undefined
    case 'object': {
      const value = parseJson(text, context)
      return isObject(value) ? value : undefined
    }
    case 'array': return toArray(text, schema, context)
    default: return undefined
  }
}

function toBoolean (text: string): boolean | undefined {
  if (text === 'true' || text === '1') return true
  return text === 'false' || text === '0' ? false : undefined
}

function toArray (text: string, schema: unknown, context: ConversionContext): unknown[] | undefined {
  const value = parseJson(text, context)
  if (Array.isArray(value)) return value
  // After `maxFailures`, texts are not parsed as JSON, and not split at commas either: they may be JSON.
  if (context.isElement || context.failures.left <= 0) return undefined
  if (text === '') return []
  const schemaAt = elementsOf(schema, context)
  return text.split(',').map((each, index) => convert(schemaAt(index), each.trim(), { ...context, isElement: true }))
}

function elementsOf (schema: unknown, { root, elements }: ConversionContext): ElementSchemas {
  let known = elements.get(schema)
  if (!known) elements.set(schema, known = elementSchemas(schema, root))
  return known
}

/**
 * Creates a function that returns the schema of an array's element at an index. If the schema of the array allows
 * several kinds of arrays, an element may match any of their element schemas.
 */
function elementSchemas (schema: unknown, root: unknown): ElementSchemas {
  const arraySchemas = arraySchemasIn(schema, root, new Set())
  const known = new Map<number, unknown>()
  const prefixLength =
    Math.max(0, ...arraySchemas.map(({ prefixItems }) => Array.isArray(prefixItems) ? prefixItems.length : 0))
  return (index) => {
    // All elements after the longest `prefixItems` have the same schema.
    const position = Math.min(index, prefixLength)
    if (!known.has(position)) {
      const choices = arraySchemas.map(({ prefixItems, items }): unknown =>
        Array.isArray(prefixItems) && position < prefixItems.length ? prefixItems[position] : (items ?? {})
      )
      known.set(position, choices.length > 1 ? { anyOf: choices } : choices[0])
    }
    return known.get(position)
  }
}

/** Returns the schema itself if it describes an array, otherwise the array schemas that it references or combines. */
function arraySchemasIn (schema: unknown, root: unknown, visited: Set<unknown>): Array<Record<string, unknown>> {
  if (!isObject(schema) || visited.has(schema)) return []
  visited.add(schema)
  if (schema.type === 'array' || schema.items !== undefined || schema.prefixItems !== undefined) return [schema]
  const referenced = typeof schema.$ref === 'string' ? resolveRef(schema.$ref, root) : undefined
  return [referenced, schema.allOf, schema.anyOf, schema.oneOf].flat().flatMap((each) =>
    arraySchemasIn(each, root, visited))
}

/**
 * Parses a JSON text; undefined if it is invalid or nested too deeply, if a number in it would lose precision, or after
 * `maxFailures`.
 */
function parseJson (text: string, { failures }: ConversionContext): unknown {
  if (failures.left <= 0 || isDeeperThan(text, baseLimits.requestDepth)) return undefined
  try {
    return findInexactNumber(text) === undefined ? JSON.parse(text) : undefined
  } catch {
    failures.left--
    return undefined
  }
}
