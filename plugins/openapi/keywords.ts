// What each keyword of JSON Schema is in OpenAPI 3.0.3, where it stands alone. A value that is none for its keyword is left out.
import { isObject } from '../../protocol/json.ts'

export type JsonObject = Record<string, unknown>

const isText = (value: unknown): value is string => typeof value === 'string'
const isNumber = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value)
const isCount = (value: unknown): boolean => isNumber(value) && Number.isInteger(value) && value >= 0
const isFlag = (value: unknown): boolean => typeof value === 'boolean'

/** Keywords that only describe. */
export const annotationKeywords: ReadonlySet<string> = new Set(['title', 'description', 'default', 'example', 'deprecated'])

/** Keywords that mean here what they mean there, with what they may be. */
const same: ReadonlyMap<string, (value: unknown) => boolean> = new Map<string, (value: unknown) => boolean>([
  ['title', isText], ['description', isText], ['default', hasNoRef], ['example', hasNoRef], ['deprecated', isFlag], ['format', isText],
  ['multipleOf', (value) => isNumber(value) && value > 0], ['minimum', isNumber], ['maximum', isNumber],
  ['minLength', isCount], ['maxLength', isCount], ['pattern', isPattern],
  ['minItems', isCount], ['maxItems', isCount], ['uniqueItems', isFlag], ['minProperties', isCount], ['maxProperties', isCount]
])

/**
 * True for what needs no translation, its parts included: each keyword of it means there what it means here.
 * @param levels so deep it is looked: who asks for every part of a schema looks at none of them more often
 */
export function isPortable (schema: unknown, levels = 5): boolean {
  if (!isObject(schema) || levels === 0) return false
  for (const key of Object.keys(schema)) if (!isCommonKeyword(key, schema[key], schema, levels - 1)) return false
  // A list says what it is of.
  return schema.type !== 'array' || schema.items !== undefined
}

function isCommonKeyword (key: string, value: unknown, { type }: JsonObject, levels: number): boolean {
  switch (key) {
    case 'type':
      return single.has(value)
    case 'properties':
      return isObject(value) && !Object.hasOwn(value, '$ref') && Object.values(value).every((each) => isPortable(each, levels))
    case 'items':
      return type === 'array' && isPortable(value, levels)
    case 'additionalProperties':
      return typeof value === 'boolean' || isPortable(value, levels)
    case 'required':
      return isSetOfTexts(value)
    case 'enum':
      return type !== undefined && isSetOfTexts(value)
    default:
      return same.get(key)?.(value) === true
  }
}

const isSetOfTexts = (value: unknown): boolean =>
  isListOfTexts(value) && new Set(value as string[]).size === (value as string[]).length && (value as string[]).length > 0

/** What a schema says beside its type, its parts and its cases. */
export function translateKeywords (schema: JsonObject): JsonObject {
  const out: JsonObject = {}
  for (const key of Object.keys(schema)) {
    const value = schema[key]
    if (same.get(key)?.(value)) out[key] = value
    else if (key === 'required' && Array.isArray(value)) {
      const names = [...new Set(value.filter(isText))]
      if (names.length > 0) out.required = names
    } else if (key === 'examples' && Array.isArray(value) && value.length > 0 && schema.example === undefined && hasNoRef(value[0])) {
      out.example = value[0] as unknown
    }
  }
  // There `binary` means the bytes themselves.
  if (schema.contentEncoding === 'base64' && (schema.format === undefined || schema.format === 'binary')) out.format = 'byte'
  exclusive(schema, out, 'exclusiveMinimum', 'minimum', 1)
  exclusive(schema, out, 'exclusiveMaximum', 'maximum', -1)
  return out
}

/** Keywords of which something is lost when they are left out. */
const asserting = new Set([
  'multipleOf',
  'minimum',
  'maximum',
  'minLength',
  'maxLength',
  'pattern',
  'minItems',
  'maxItems',
  'uniqueItems',
  'minProperties',
  'maxProperties',
  'enum'
])

/** Whether all that a schema asks for, beside its parts, is asked for by what was made of it. */
export function keepsAllConstraints (schema: JsonObject, made: JsonObject): boolean {
  for (const key of Object.keys(schema)) if (asserting.has(key) && !Object.hasOwn(made, key)) return false
  const { type, required, exclusiveMinimum, exclusiveMaximum } = schema
  const knows = type === undefined || [type].flat().every((each) => each === 'null' || (typeof each === 'string' && names.includes(each)))
  return (
    knows &&
    (required === undefined || isListOfTexts(required)) &&
    [exclusiveMinimum, exclusiveMaximum].every((each) => each === undefined || typeof each === 'boolean' || isNumber(each)) &&
    !(Object.hasOwn(schema, 'const') && Object.hasOwn(schema, 'enum'))
  )
}

const isListOfTexts = (value: unknown): boolean => Array.isArray(value) && value.every(isText)

/** A bound of its own there, a flag beside the bound here. Where both are given, the narrower counts. */
function exclusive (schema: JsonObject, out: JsonObject, keyword: string, beside: string, direction: number): void {
  const strict = schema[keyword]
  const bound = out[beside]
  if (strict === undefined) return
  if (strict === true) {
    if (bound !== undefined) out[keyword] = true
  } else if (isNumber(strict) && (!isNumber(bound) || (strict - bound) * direction >= 0)) {
    out[beside] = strict
    out[keyword] = true
  }
}

/** Readers of OpenAPI follow `$ref` wherever it stands, in values too: such a value would break the document, or have them fetch it. */
export function hasNoRef (value: unknown): boolean {
  return typeof value !== 'object' || value === null || !JSON.stringify(value).includes('"$ref"')
}

function isPattern (value: unknown): boolean {
  if (!isText(value)) return false
  try {
    return Boolean(new RegExp(value, 'u'))
  } catch {
    return false
  }
}

/** What takes `null` only. */
const nothingButNull: JsonObject = { type: 'string', nullable: true, enum: [null] }
export const isNullOnly = ({ nullable, enum: values }: JsonObject): boolean =>
  nullable === true && Array.isArray(values) && values.length === 1 && values[0] === null

const names = ['string', 'number', 'integer', 'boolean', 'array', 'object']
/** What most schemas are: of one type, or of none that is stated. Shared, so never changed. */
const single: ReadonlyMap<unknown, { own: JsonObject }> = new Map(names.map((type) => [type, { own: { type } }]))
/** All of them, with `integer` among the numbers. */
const everything = names.length - 1

/** The `type` of a schema: one, which may be null; or, where there are several, a choice `among` them. */
export function translateType (schema: JsonObject): { own: JsonObject, among?: JsonObject[] } {
  const { type } = schema
  if (type === undefined) return { own: {} }
  const simple = typeof type === 'string' && schema.nullable !== true ? single.get(type) : undefined
  if (simple) return simple
  const given = [type].flat()
  const nullable = given.includes('null') || schema.nullable === true
  const types = names.filter((name) => given.includes(name) && !(name === 'integer' && given.includes('number')))
  if (types.length === 0) return { own: given.includes('null') ? nothingButNull : {} }
  if (types.length === everything && nullable) return { own: {} }
  const each = types.map((name, at): JsonObject => nullable && at === 0 ? { type: name, nullable } : { type: name })
  return each.length === 1 && each[0] ? { own: each[0] } : { own: {}, among: each }
}

/** `enum` and `const`, with the type where all values have one and it is not stated. */
export function translateEnum (schema: JsonObject, own: JsonObject): JsonObject | undefined {
  const given: unknown = Object.hasOwn(schema, 'const') ? [schema.const] : schema.enum
  if (!Array.isArray(given) || given.length === 0 || own === nothingButNull || !hasNoRef(given)) return undefined
  const values = [...new Map(given.map((value) => [JSON.stringify(value), value])).values()] as unknown[]
  if (schema.type !== undefined) return { enum: values }
  if (values.every((value) => value === null)) return nothingButNull
  const kinds = new Set(values.map((value) => value === null ? null : isObject(value) || Array.isArray(value) ? 'other' : typeof value))
  const [type] = [...kinds].filter((kind) => kind !== null)
  if (kinds.size > (kinds.has(null) ? 2 : 1) || type === 'other') return { enum: values }
  return { type, ...(kinds.has(null) ? { nullable: true } : {}), enum: values }
}
