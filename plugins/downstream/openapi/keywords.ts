// These functions translate keywords of JSON Schema to OpenAPI 3.0.3. A keyword with an invalid value is dropped.
import { isValidPattern } from '../../base/json-schema/index.ts'

export type JsonObject = Record<string, unknown>

const isString = (value: unknown): value is string => typeof value === 'string'
const isNumber = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value)
const isCount = (value: unknown): boolean => isNumber(value) && Number.isInteger(value) && value >= 0
const isBoolean = (value: unknown): boolean => typeof value === 'boolean'

/** The keywords that describe values and restrict nothing. */
export const annotationKeywords: ReadonlySet<string> =
  new Set(['title', 'description', 'default', 'example', 'deprecated'])

/** Keywords with the same meaning in OpenAPI 3.0.3, each with a test of its value. */
const sharedKeywords: ReadonlyMap<string, (value: unknown) => boolean> = new Map<string, (value: unknown) => boolean>([
  ['title', isString], ['description', isString], ['default', isRefFree], ['example', isRefFree],
  ['deprecated', isBoolean], ['format', isString],
  ['multipleOf', (value) => isNumber(value) && value > 0], ['minimum', isNumber], ['maximum', isNumber],
  ['minLength', isCount], ['maxLength', isCount], ['pattern', isValidPattern],
  ['minItems', isCount], ['maxItems', isCount], ['uniqueItems', isBoolean], ['minProperties', isCount],
  ['maxProperties', isCount]
])

/** Translates the keywords of a schema, except `type`, `enum`, `const` and those with subschemas. */
export function translateKeywords (schema: JsonObject): JsonObject {
  const out: JsonObject = {}
  for (const key of Object.keys(schema)) {
    const value = schema[key]
    if (sharedKeywords.get(key)?.(value)) out[key] = value
    else if (key === 'required' && Array.isArray(value)) {
      const names = [...new Set(value.filter(isString))]
      if (names.length > 0) out.required = names
    } else if (key === 'examples' && Array.isArray(value) && value.length > 0 && schema.example === undefined &&
        isRefFree(value[0])) {
      out.example = value[0] as unknown
    }
  }
  // In OpenAPI 3.0.3, `byte` means base64, and `binary` raw bytes.
  if (schema.contentEncoding === 'base64' && (schema.format === undefined || schema.format === 'binary')) {
    out.format = 'byte'
  }
  translateExclusive(schema, out, 'exclusiveMinimum', 'minimum', 1)
  translateExclusive(schema, out, 'exclusiveMaximum', 'maximum', -1)
  return out
}

/** The keywords that restrict values: a translation that lacks one accepts more values than the original. */
const assertionKeywords = new Set([
  'multipleOf', 'minimum', 'maximum', 'minLength', 'maxLength', 'pattern', 'minItems', 'maxItems', 'uniqueItems',
  'minProperties', 'maxProperties', 'enum'
])

/** Whether a translation keeps all constraints of a schema. Constraints in subschemas are not considered. */
export function keepsAllConstraints (schema: JsonObject, translated: JsonObject): boolean {
  for (const key of Object.keys(schema)) if (assertionKeywords.has(key) && !Object.hasOwn(translated, key)) return false
  const { type, required, exclusiveMinimum, exclusiveMaximum } = schema
  const hasKnownTypes =
    type === undefined ||
      [type].flat().every((each) => each === 'null' || (typeof each === 'string' && typeNames.includes(each)))
  return (
    hasKnownTypes &&
    (required === undefined || isStringArray(required)) &&
    [exclusiveMinimum, exclusiveMaximum].every((each) =>
      each === undefined || typeof each === 'boolean' || isNumber(each)) &&
    !(Object.hasOwn(schema, 'const') && Object.hasOwn(schema, 'enum'))
  )
}

const isStringArray = (value: unknown): boolean => Array.isArray(value) && value.every(isString)

/**
 * Translates an exclusive bound, which is a number in JSON Schema, and a boolean beside the inclusive bound in OpenAPI
 * 3.0.3. If a schema has both bounds, the narrower one is used.
 * @param direction 1 for a minimum, -1 for a maximum
 */
function translateExclusive (
  schema: JsonObject, out: JsonObject, keyword: string, inclusive: string, direction: number
): void {
  const exclusive = schema[keyword]
  const bound = out[inclusive]
  if (exclusive === undefined) return
  if (exclusive === true) {
    if (bound !== undefined) out[keyword] = true
  } else if (isNumber(exclusive) && (!isNumber(bound) || (exclusive - bound) * direction >= 0)) {
    out[inclusive] = exclusive
    out[keyword] = true
  }
}

/**
 * Whether a value contains no `$ref`. Many OpenAPI parsers follow each `$ref`, even one in data, which would break the
 * document or make the parser fetch a URL.
 */
export function isRefFree (value: unknown): boolean {
  return typeof value !== 'object' || value === null || !JSON.stringify(value).includes('"$ref"')
}

/** A schema that accepts null only. */
const nullOnly: JsonObject = { type: 'string', nullable: true, enum: [null] }
export const isNullOnly = ({ nullable, enum: values }: JsonObject): boolean =>
  nullable === true && Array.isArray(values) && values.length === 1 && values[0] === null

const typeNames = ['string', 'number', 'integer', 'boolean', 'array', 'object']
/** The results of `translateType` for single types, which most schemas have. They are shared: do not change them. */
const singleTypes: ReadonlyMap<unknown, { own: JsonObject }> =
  new Map(typeNames.map((type) => [type, { own: { type } }]))
/** The number of types other than null, where `number` includes `integer`. */
const allTypes = typeNames.length - 1

/** Translates the `type` of a schema, with `nullable` if it includes null. Several types become `alternatives`. */
export function translateType (schema: JsonObject): { own: JsonObject, alternatives?: JsonObject[] } {
  const { type } = schema
  if (type === undefined) return { own: {} }
  const single = typeof type === 'string' && schema.nullable !== true ? singleTypes.get(type) : undefined
  if (single) return single
  const given = [type].flat()
  const nullable = given.includes('null') || schema.nullable === true
  const types = typeNames.filter((name) => given.includes(name) && !(name === 'integer' && given.includes('number')))
  if (types.length === 0) return { own: given.includes('null') ? nullOnly : {} }
  if (types.length === allTypes && nullable) return { own: {} }
  const alternatives =
    types.map((name, index): JsonObject => nullable && index === 0 ? { type: name, nullable } : { type: name })
  return alternatives.length === 1 && alternatives[0] ? { own: alternatives[0] } : { own: {}, alternatives }
}

/**
 * Translates `enum` and `const` to `enum`, with a type if the schema has none and all values share one.
 * @param own the result of `translateType` for the schema
 * @returns undefined if there are no values, if they contain a `$ref`, or if `own` already accepts null only
 */
export function translateEnum (schema: JsonObject, own: JsonObject): JsonObject | undefined {
  const given: unknown = Object.hasOwn(schema, 'const') ? [schema.const] : schema.enum
  if (!Array.isArray(given) || given.length === 0 || own === nullOnly || !isRefFree(given)) return undefined
  const values = [...new Map(given.map((value) => [JSON.stringify(value), value])).values()] as unknown[]
  if (schema.type !== undefined) return { enum: values }
  if (values.every((value) => value === null)) return nullOnly
  const hasNull = values.includes(null)
  const types = new Set(values.filter((value) => value !== null).map((value) => typeof value))
  const [type] = types
  // The type object or array would need further keywords.
  if (types.size > 1 || type === 'object') return { enum: values }
  return { type, ...(hasNull ? { nullable: true } : {}), enum: values }
}

/**
 * Combines schemas so that all of them apply: the others are merged into the first if that keeps their meaning,
 * otherwise they are put in its `allOf`.
 */
export function joinSchemas (first: JsonObject, others: readonly JsonObject[]): JsonObject {
  const out = { ...first }
  const separate: JsonObject[] = []
  for (const other of others) {
    const keys = Object.keys(other)
    if (keys.length === 0) continue
    if (keys[0] === '$ref') separate.push(other)
    // A combining keyword has the same meaning beside any other keywords.
    else if (isCombination(keys) && !Object.hasOwn(out, keys[0] ?? '')) Object.assign(out, other)
    // Other keywords may affect each other, so they are merged only with annotations.
    else if (Object.keys(out).every((key) => annotationKeywords.has(key))) Object.assign(out, { ...other, ...out })
    else separate.push(other)
  }
  if (separate.length === 0) return out
  if (separate.length === 1 && separate[0] && Object.keys(out).length === 0) return separate[0]
  return { ...out, allOf: [...(Array.isArray(out.allOf) ? out.allOf as JsonObject[] : []), ...separate] }
}

const isCombination = (keys: readonly string[]): boolean =>
  keys.length === 1 && ['anyOf', 'oneOf', 'not'].includes(keys[0] ?? '')
