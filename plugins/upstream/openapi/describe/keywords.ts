// The keywords of JSON Schema 2020-12 that schemas of a description may contain.
import { isObject } from '../../../../protocol/json.ts'
import { isValidPattern } from '../../../base/json-schema/index.ts'
import { DescriptionError } from '../plan.ts'
import type { ReferenceResolver } from './refs.ts'

/** A schema of JSON Schema 2020-12. */
export type JsonSchema = Record<string, unknown>

type IsValid = (value: unknown) => boolean

const types = new Set(['string', 'number', 'integer', 'boolean', 'object', 'array', 'null'])
export const isTypeName = (value: unknown): value is string => typeof value === 'string' && types.has(value)
const isNumber: IsValid = (value) => typeof value === 'number' && Number.isFinite(value)
const isCount: IsValid = (value) => Number.isSafeInteger(value) && (value as number) >= 0
export const isString: IsValid = (value) => typeof value === 'string'
const isBoolean: IsValid = (value) => typeof value === 'boolean'
export const isSchema: IsValid = (value) => isObject(value) || typeof value === 'boolean'

/** Annotations and `const`, each with a check of its value. They are copied if the value is valid. */
const annotations: Readonly<Record<string, IsValid>> = {
  title: isString,
  description: isString,
  format: isString,
  contentEncoding: isString,
  contentMediaType: isString,
  deprecated: isBoolean,
  writeOnly: isBoolean,
  const: () => true,
  default: () => true
}

/** Assertions, each with a check of its value. They are copied if the value is valid, and dropped otherwise. */
const assertions: Readonly<Record<string, IsValid>> = {
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
  uniqueItems: isBoolean
}
/** The keywords that are copied without conversion, each with a check of its value. */
export const copiedKeywords = Object.entries({ ...annotations, ...assertions })
const assertionEntries = Object.entries(assertions)

/** Keywords whose value is a schema, without `items` and `additionalProperties`, which are converted differently. */
export const plainSchemaKeywords = [
  'not', 'if', 'then', 'else', 'contains', 'propertyNames', 'unevaluatedItems', 'unevaluatedProperties',
  'contentSchema'
] as const
/** Keywords whose value is an array of schemas. */
export const schemaListKeywords = ['allOf', 'anyOf', 'oneOf', 'prefixItems'] as const

/** All keywords whose value is a schema. */
export const schemaValuedKeywordSet: ReadonlySet<string> =
  new Set(['items', 'additionalProperties', ...plainSchemaKeywords])
/** The keywords whose value is an array of schemas, as a set. */
export const schemaListKeywordSet: ReadonlySet<string> = new Set(schemaListKeywords)
/** All keywords whose value is an object of schemas. */
export const schemaMapKeywordSet: ReadonlySet<string> = new Set(['properties', 'patternProperties', 'dependentSchemas'])

/** Returns the direct subschemas of a schema. */
export function subschemasOf (schema: Readonly<Record<string, unknown>>): unknown[] {
  return Object.entries(schema).flatMap(([key, value]) => {
    if (schemaValuedKeywordSet.has(key)) return value
    if (schemaListKeywordSet.has(key)) return Array.isArray(value) ? value : []
    return schemaMapKeywordSet.has(key) && isObject(value) ? Object.values(value) : []
  })
}

/**
 * Converts a regular expression to the dialect of JSON Schema, which uses the flag `u`: removes needless escapes, which
 * are common in descriptions, but invalid with this flag.
 * @returns undefined if the result is still invalid, or the value is not a string
 */
export function toUnicodePattern (value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined
  if (isValidPattern(value)) return value
  const withoutEscapes = value.replace(/\\([^])/g, (escape, character: string) => {
    // Without an escape, a dash within a character class would form a range.
    if (character === '-') return '\\x2d'
    return /[A-Za-z0-9^$\\.*+?()[\]{}|/]/.test(character) ? escape : character
  })
  return isValidPattern(withoutEscapes) ? withoutEscapes : undefined
}

/** Whether the conversion drops a member of a schema's `patternProperties`, because its pattern is invalid. */
export const dropsPatternProperty = (patternProperties: unknown): boolean =>
  isObject(patternProperties) && Object.keys(patternProperties).some((name) => toUnicodePattern(name) === undefined)

/**
 * Whether the conversion drops a constraint of a schema: an invalid keyword, the mapping of a `discriminator`, a
 * `format`, which only annotates in JSON Schema 2020-12, or the schema itself because it is `readOnly`. Subschemas are
 * not checked.
 */
function dropsConstraint (schema: Readonly<Record<string, unknown>>): boolean {
  const { type, enum: values, pattern, patternProperties, discriminator, format, readOnly } = schema
  if (discriminator !== undefined || format !== undefined || readOnly === true) return true
  if (dropsPatternProperty(patternProperties)) return true
  if (pattern !== undefined && toUnicodePattern(pattern) === undefined) return true
  if (type !== undefined && type !== 'file' && ![type].flat().every(isTypeName)) return true
  if (values !== undefined && !(Array.isArray(values) && values.length > 0)) return true
  return assertionEntries.some(([key, isValid]) => {
    const value = schema[key]
    // Up to OpenAPI 3.0, `exclusiveMinimum` and `exclusiveMaximum` are booleans.
    return value !== undefined && typeof value !== 'boolean' && !isValid(value)
  })
}

/**
 * Relaxes a converted schema whose subschemas accept more than the original ones: omits keywords that could therefore
 * reject calls that the API accepts, such as `not`, and converts `oneOf` to `anyOf`.
 */
export function relaxSchema ({
  not: _not,
  if: _if,
  then: _then,
  else: _else,
  unevaluatedItems: _unevaluatedItems,
  unevaluatedProperties: _unevaluatedProperties,
  maxContains: _maxContains,
  oneOf,
  ...rest
}: JsonSchema): JsonSchema {
  if (oneOf === undefined) return rest
  if (rest.anyOf === undefined) return { ...rest, anyOf: oneOf }
  return { ...rest, allOf: [...(Array.isArray(rest.allOf) ? (rest.allOf as unknown[]) : []), { anyOf: oneOf }] }
}

/** Finds out for which schemas the conversion drops a constraint, so that the result accepts more. */
export class LossDetector {
  readonly #refs: ReferenceResolver
  /** The result of `losslessRefs` for the target of each reference. */
  readonly #refsIn = new Map<string, readonly string[] | undefined>()

  constructor (refs: ReferenceResolver) {
    this.#refs = refs
  }

  /**
   * Whether the conversion drops a constraint of the schema, or of a schema that it references directly or indirectly.
   */
  isLossy (schema: unknown): boolean {
    const queue = losslessRefs(schema)
    if (queue === undefined) return true
    const visited = new Set<string>()
    for (const ref of queue) {
      if (visited.has(ref)) continue
      visited.add(ref)
      if (!this.#refsIn.has(ref)) this.#refsIn.set(ref, losslessRefs(this.#lookUp(ref)))
      const targets = this.#refsIn.get(ref)
      if (targets === undefined) return true
      queue.push(...targets)
    }
    return false
  }

  /** Looks up a reference; undefined if its target does not exist, which the conversion of the reference reports. */
  #lookUp (ref: string): unknown {
    try {
      return this.#refs.lookUp(ref)
    } catch (error) {
      if (error instanceof DescriptionError) return undefined
      throw error
    }
  }
}

/** Returns the references in a schema and its subschemas; undefined if the conversion drops a constraint in them. */
function losslessRefs (schema: unknown): string[] | undefined {
  const refs: string[] = []
  const queue = [schema]
  for (const each of queue) {
    if (!isObject(each)) continue
    if (dropsConstraint(each)) return undefined
    if (typeof each.$ref === 'string') refs.push(each.$ref)
    for (const subschema of subschemasOf(each)) queue.push(subschema)
  }
  return refs
}
