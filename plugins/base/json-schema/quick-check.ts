// Validates against simple schemas, which most tools have, without a worker thread: that would double a call's cost.
import { isObject } from '../../../protocol/json.ts'

/**
 * Tells whether a value is valid without conversion. Its time is at most proportional to the size of the value times
 * the size of the schema.
 */
export type QuickCheck = (value: unknown) => boolean

const types: ReadonlyMap<unknown, QuickCheck> = new Map<unknown, QuickCheck>([
  [undefined, () => true],
  ['null', (value) => value === null],
  ['boolean', (value) => typeof value === 'boolean'],
  ['integer', Number.isInteger],
  ['number', Number.isFinite],
  ['string', (value) => typeof value === 'string'],
  ['array', Array.isArray],
  ['object', isObject]
])

type Bound = (value: unknown, bound: number) => boolean
const numbers = (holds: (value: number, bound: number) => boolean): Bound =>
  (value, bound) => typeof value !== 'number' || holds(value, bound)
/** JSON Schema measures the length of strings in code points. */
const texts = (holds: (value: number, bound: number) => boolean): Bound =>
  (value, bound) => typeof value !== 'string' || holds([...value].length, bound)
const lists = (holds: (value: number, bound: number) => boolean): Bound =>
  (value, bound) => !Array.isArray(value) || holds(value.length, bound)
const isAtLeast = (value: number, bound: number): boolean => value >= bound
const isAtMost = (value: number, bound: number): boolean => value <= bound

const bounds: ReadonlyMap<string, Bound> = new Map([
  ['minimum', numbers(isAtLeast)],
  ['maximum', numbers(isAtMost)],
  ['exclusiveMinimum', numbers((value, bound) => value > bound)],
  ['exclusiveMaximum', numbers((value, bound) => value < bound)],
  ['minLength', texts(isAtLeast)],
  ['maxLength', texts(isAtMost)],
  ['minItems', lists(isAtLeast)],
  ['maxItems', lists(isAtMost)]
])

/** The keywords that are checked, and annotations such as `format` (JSON Schema 2020-12, Validation, 7.2.1). */
const knownKeywords = new Set([
  'type', 'properties', 'required', 'additionalProperties', 'items', 'enum', 'anyOf', ...bounds.keys(),
  'title', 'description', 'default', 'examples', 'format', '$comment', 'deprecated', 'readOnly', 'writeOnly'
])
/** Max nesting depth of a schema with a quick check. */
const maxDepth = 16

/**
 * Creates a check for a schema that has only `knownKeywords`, and `$schema` at the top: no patterns, references and
 * conditions, which may take unlimited time. A value that the check accepts needs no conversion.
 * @returns undefined for any other schema, for one nested deeper than `maxDepth`, and if a keyword has a value that the
 *   check does not support, such as a schema in `additionalProperties`
 */
export function createQuickCheck (schema: unknown): QuickCheck | undefined {
  if (!isObject(schema)) return undefined
  const { $schema, ...rest } = schema
  return checkOf(rest, 0)
}

function checkOf (schema: unknown, depth: number): QuickCheck | undefined {
  if (!isObject(schema) || depth > maxDepth) return undefined
  if (!Object.keys(schema).every((keyword) => knownKeywords.has(keyword))) return undefined
  const { required = [], additionalProperties = true } = schema
  const isType = types.get(schema.type)
  const checks = [enumCheck(schema.enum), boundCheck(schema), anyCheck(schema.anyOf, depth)]
  const element = schema.items === undefined ? isAnything : checkOf(schema.items, depth + 1)
  const members = memberChecks(schema.properties, depth)
  if (!isType || !element || !members || checks.includes(undefined)) return undefined
  if (!isTextList(required) || typeof additionalProperties !== 'boolean') return undefined
  return (value) => {
    if (!isType(value) || !checks.every((check) => check?.(value))) return false
    if (Array.isArray(value)) return value.every(element)
    if (!isObject(value)) return true
    if (!required.every((name) => Object.hasOwn(value, name))) return false
    return Object.keys(value).every((name) => members.get(name)?.(value[name]) ?? additionalProperties)
  }
}

const isAnything: QuickCheck = () => true
const isTextList = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((each) => typeof each === 'string')

function memberChecks (properties: unknown = {}, depth: number): ReadonlyMap<string, QuickCheck> | undefined {
  if (!isObject(properties)) return undefined
  const checks = new Map<string, QuickCheck>()
  for (const [name, part] of Object.entries(properties)) {
    const check = checkOf(part, depth + 1)
    if (!check) return undefined
    checks.set(name, check)
  }
  return checks
}

function enumCheck (values: unknown): QuickCheck | undefined {
  if (values === undefined) return isAnything
  if (!Array.isArray(values) || values.some((value) => typeof value === 'object' && value !== null)) return undefined
  const allowed = new Set(values)
  return (value) => allowed.has(value)
}

function boundCheck (schema: Record<string, unknown>): QuickCheck | undefined {
  const stated = [...bounds].filter(([keyword]) => schema[keyword] !== undefined)
  if (!stated.every(([keyword]) => typeof schema[keyword] === 'number')) return undefined
  if (stated.length === 0) return isAnything
  return (value) => stated.every(([keyword, holds]) => holds(value, Number(schema[keyword])))
}

function anyCheck (choices: unknown, depth: number): QuickCheck | undefined {
  if (choices === undefined) return isAnything
  // With `properties` or `items` in a choice, the worker may convert members or elements of a value that is valid as it
  // is. Such schemas have no quick check.
  if (!Array.isArray(choices) || choices.some((choice) => isObject(choice) && hasParts(choice))) return undefined
  const checks = choices.map((choice) => checkOf(choice, depth + 1))
  return checks.includes(undefined) ? undefined : (value) => checks.some((check) => check?.(value))
}

const hasParts = ({ properties, items }: Record<string, unknown>): boolean =>
  properties !== undefined || items !== undefined
