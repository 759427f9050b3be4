// The keywords of JSON Schema 2020-12 as a description's schemas use them.
import { isObject } from '../../../../protocol/json.ts'

/** A JSON Schema of 2020-12. */
export type JsonSchema = Record<string, unknown>

const types = new Set(['string', 'number', 'integer', 'boolean', 'object', 'array', 'null'])
export const isType = (value: unknown): value is string => typeof value === 'string' && types.has(value)
const isNumber = (value: unknown): boolean => typeof value === 'number' && Number.isFinite(value)
const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0
export const isString = (value: unknown): boolean => typeof value === 'string'
const isFlag = (value: unknown): boolean => typeof value === 'boolean'
export const isSchema = (value: unknown): boolean => isObject(value) || typeof value === 'boolean'

/** Keywords that refuse nothing, and those that do: each is taken as it is, if it is what it should be. */
const describing: Readonly<Record<string, (value: unknown) => boolean>> = {
  title: isString,
  description: isString,
  format: isString,
  contentEncoding: isString,
  contentMediaType: isString,
  deprecated: isFlag,
  writeOnly: isFlag,
  const: () => true,
  default: () => true
}
const bounding: Readonly<Record<string, (value: unknown) => boolean>> = {
  minimum: isNumber,
  maximum: isNumber,
  exclusiveMinimum: isNumber,
  exclusiveMaximum: isNumber,
  multipleOf: (value) => isNumber(value) && (value as number) > 0,
  minLength: isCount,
  maxLength: isCount,
  minItems: isCount,
  maxItems: isCount,
  minContains: isCount,
  maxContains: isCount,
  minProperties: isCount,
  maxProperties: isCount,
  uniqueItems: isFlag
}
export const copiedKeywords = Object.entries({ ...describing, ...bounding })
const bounds = Object.entries(bounding)

/** Keywords that hold a schema, a list of them, or a map. */
export const schemaKeywords = [
  'not',
  'if',
  'then',
  'else',
  'contains',
  'propertyNames',
  'unevaluatedItems',
  'unevaluatedProperties',
  'contentSchema'
] as const
export const schemaListKeywords = ['allOf', 'anyOf', 'oneOf', 'prefixItems'] as const
export const schemaKeywordSet: ReadonlySet<string> = new Set(['items', 'additionalProperties', ...schemaKeywords])
export const schemaListKeywordSet: ReadonlySet<string> = new Set(schemaListKeywords)
export const schemaMapKeywordSet: ReadonlySet<string> = new Set(['properties', 'patternProperties', 'dependentSchemas'])

/** What stands where a schema may hold others. */
export function subschemasOf (schema: Readonly<Record<string, unknown>>): unknown[] {
  return Object.entries(schema).flatMap(([key, each]) =>
    schemaKeywordSet.has(key) || (schemaListKeywordSet.has(key) && Array.isArray(each))
      ? each
      : schemaMapKeywordSet.has(key) && isObject(each)
        ? Object.values(each)
        : []
  )
}

/** A regular expression as JSON Schema has it, which is with Unicode: descriptions escape more than that admits. undefined: it is none. */
export function toPattern (value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined
  if (isPattern(value)) return value
  // A dash that is escaped makes no range where it stands in a class.
  const strict = value.replace(/\\([^])/g, (whole, character: string) =>
    character === '-' ? '\\x2d' : /[A-Za-z0-9^$\\.*+?()[\]{}|/]/.test(character) ? whole : character
  )
  return isPattern(strict) ? strict : undefined
}

function isPattern (value: string): boolean {
  try {
    return new RegExp(value, 'u') instanceof RegExp
  } catch {
    return false
  }
}

/** Whether of the patterns of members, to their schemas, one cannot be said. */
export const dropsPattern = (patternProperties: unknown): boolean =>
  isObject(patternProperties) && Object.keys(patternProperties).some((name) => toPattern(name) === undefined)

/** Whether a schema asks for something, beside its parts, that cannot be said and is left out. */
export function dropsConstraint (schema: Readonly<Record<string, unknown>>): boolean {
  const { type, enum: values, pattern, patternProperties } = schema
  if (dropsPattern(patternProperties) || (pattern !== undefined && toPattern(pattern) === undefined)) return true
  if (type !== undefined && type !== 'file' && ![type].flat().every(isType)) return true
  if (values !== undefined && !(Array.isArray(values) && values.length > 0)) return true
  // Up to 3.0 some bounds are flags, which say how another one is meant.
  return bounds.some(([key, isRight]) => schema[key] !== undefined && typeof schema[key] !== 'boolean' && !isRight(schema[key]))
}

/**
 * A schema some of whose parts take more than they should. What would refuse more for that is left out, and a choice of exactly
 * one becomes a choice of any: a call that the API takes must not be refused.
 */
export function relaxed ({
  not: _not,
  if: _if,
  then: _then,
  else: _else,
  unevaluatedItems: _items,
  unevaluatedProperties: _properties,
  maxContains: _most,
  oneOf,
  ...rest
}: JsonSchema): JsonSchema {
  if (oneOf === undefined) return rest
  if (rest.anyOf === undefined) return { ...rest, anyOf: oneOf }
  return { ...rest, allOf: [...(Array.isArray(rest.allOf) ? (rest.allOf as unknown[]) : []), { anyOf: oneOf }] }
}
