import { isObject } from '../../../../protocol/json.ts'
import { DescriptionError } from '../plan.ts'
import {
  copiedKeywords, dropsPatternProperty, isSchema, isString, isTypeName, type JsonSchema, LossDetector, relaxSchema,
  plainSchemaKeywords, schemaListKeywords, toUnicodePattern
} from './keywords.ts'
import type { ReferenceResolver } from './refs.ts'

type ConvertedKeywords = Map<string, unknown>

/**
 * Converts the schemas of one description to JSON Schema 2020-12, for requests: `readOnly` properties are omitted.
 * References are kept, but refer to `$defs`. Keywords with invalid values are dropped, so that the result is a valid
 * schema. It may accept more than the original, but not less.
 */
export class SchemaConverter {
  readonly #refs: ReferenceResolver
  readonly #losses: LossDetector
  /** Whether the description is OpenAPI 3.1 or later, whose schemas are JSON Schema 2020-12 already. */
  readonly #isModern: boolean
  /** The name in `$defs` for each reference, and the reverse. */
  readonly #nameByRef = new Map<string, string>()
  readonly #refByName = new Map<string, string>()
  readonly #definitions = new Map<string, JsonSchema>()

  constructor (refs: ReferenceResolver, isModern: boolean) {
    this.#refs = refs
    this.#losses = new LossDetector(refs)
    this.#isModern = isModern
  }

  /** Converts a schema. @throws DescriptionError for references that cannot be followed */
  convert (schema: unknown): JsonSchema {
    if (typeof schema === 'boolean') return schema ? {} : { not: {} }
    if (!isObject(schema)) return {}
    if (typeof schema.$ref === 'string') return this.#convertReference(schema, schema.$ref)
    const out: ConvertedKeywords = new Map()
    for (const [key, isValid] of copiedKeywords) {
      if (Object.hasOwn(schema, key) && isValid(schema[key])) out.set(key, schema[key])
    }
    const pattern = toUnicodePattern(schema.pattern)
    if (pattern !== undefined) out.set('pattern', pattern)
    this.#convertType(schema, out)
    convertExclusiveBounds(schema, out)
    convertValues(schema, out)
    this.#convertObject(schema, out)
    this.#convertArray(schema, out)
    this.#convertSubschemas(schema, out)
    const converted = Object.fromEntries(out)
    // If a subschema of `not`, `if` or `oneOf` accepts more than the original, the schema could accept less. With a
    // `discriminator`, a value may match several subschemas of `oneOf`: only the one that it names applies.
    const choices: unknown[] = Array.isArray(schema.oneOf) ? schema.oneOf : []
    const isLossy =
      (choices.length > 0 && schema.discriminator !== undefined) ||
      [schema.not, schema.if, ...choices].some((each) => this.#losses.isLossy(each))
    const safe = isLossy ? relaxSchema(converted) : converted
    return this.#isModern ? safe : withNullable(schema, safe)
  }

  /** Returns the converted schema for a name in `$defs`. @throws DescriptionError if the target is not a schema */
  definition (name: string): JsonSchema {
    const known = this.#definitions.get(name)
    if (known) return known
    const ref = this.#refByName.get(name)
    if (ref === undefined) return {}
    const schema = this.#refs.lookUp(ref)
    if (!isSchema(schema)) throw new DescriptionError(`the reference ${JSON.stringify(ref)} does not refer to a schema`)
    const definition = this.convert(schema)
    this.#definitions.set(name, definition)
    return definition
  }

  #convertReference (schema: Record<string, unknown>, ref: string): JsonSchema {
    const reference = { $ref: `#/$defs/${this.#nameOf(ref)}` }
    const { $ref: _, ...siblings } = schema
    if (this.#isModern) return { ...this.convert(siblings), ...reference }
    // Up to OpenAPI 3.0, the siblings of `$ref` are ignored; a description is kept, since it does not restrict values.
    return typeof schema.description === 'string' ? { ...reference, description: schema.description } : reference
  }

  /**
   * Returns the name for a reference in `$defs`. It is unique, is derived from the last token of the reference, and has
   * no characters that must be escaped.
   */
  #nameOf (ref: string): string {
    const known = this.#nameByRef.get(ref)
    if (known !== undefined) return known
    // This throws if the target does not exist, so that the operation is omitted.
    this.#refs.resolve({ $ref: ref })
    const last = ref.slice(ref.lastIndexOf('/') + 1).replace(/[^\w.-]+/g, '_')
    const base = last === '' || last in Object.prototype ? `schema_${last}` : last
    let name = base
    for (let count = 2; this.#refByName.has(name); count++) name = `${base}_${count}`
    this.#nameByRef.set(ref, name)
    this.#refByName.set(name, ref)
    return name
  }

  #convertType (schema: Record<string, unknown>, out: ConvertedKeywords): void {
    const { type, format } = schema
    if (type === 'file') {
      out.set('type', 'string')
      out.set('contentEncoding', 'base64')
      return
    }
    if (isTypeName(type)) out.set('type', type)
    else if (Array.isArray(type)) {
      const valid = [...new Set(type.filter(isTypeName))]
      if (valid.length > 0) out.set('type', valid.length === 1 ? valid[0] : valid)
    }
    if (!this.#isModern && type === 'string' && (format === 'binary' || format === 'byte')) {
      out.set('contentEncoding', 'base64')
      // JSON cannot contain raw bytes, so the argument is base64, and the format `binary` would be wrong.
      if (format === 'binary') out.delete('format')
    }
  }

  #convertObject (schema: Record<string, unknown>, out: ConvertedKeywords): void {
    const { properties, required, additionalProperties, dependentRequired, patternProperties } = schema
    const readOnly = new Set<string>()
    if (isObject(properties)) {
      const kept = Object.entries(properties).filter(([name, property]) => {
        if (this.#isReadOnly(property)) readOnly.add(name)
        return isSchema(property) && !readOnly.has(name)
      })
      out.set('properties', this.#convertMap(kept))
    }
    if (Array.isArray(required)) {
      const names = [...new Set(required.filter((name) => typeof name === 'string' && !readOnly.has(name)))]
      if (names.length > 0) out.set('required', names)
    }
    // If a pattern is dropped, the properties that it matches would count as additional ones.
    if (isSchema(additionalProperties) && !dropsPatternProperty(patternProperties)) {
      out.set('additionalProperties', typeof additionalProperties === 'boolean'
        ? additionalProperties
        : this.convert(additionalProperties))
    }
    if (isObject(dependentRequired)) {
      const valid = Object.entries(dependentRequired).flatMap(([name, names]) =>
        Array.isArray(names) ? [[name, [...new Set(names.filter(isString))]] as const] : []
      )
      out.set('dependentRequired', Object.fromEntries(valid))
    }
  }

  #isReadOnly (schema: unknown): boolean {
    if (!isObject(schema)) return false
    if (schema.readOnly === true) return true
    return typeof schema.$ref === 'string' && this.#refs.resolveObject(schema)?.readOnly === true
  }

  #convertArray ({ items }: Record<string, unknown>, out: ConvertedKeywords): void {
    if (isSchema(items)) out.set('items', this.convert(items))
    // Before JSON Schema 2020-12, `items` could be an array, which is called `prefixItems` now.
    else if (Array.isArray(items) && items.length > 0) out.set('prefixItems', items.map((each) => this.convert(each)))
  }

  #convertSubschemas (schema: Record<string, unknown>, out: ConvertedKeywords): void {
    for (const key of plainSchemaKeywords) if (isSchema(schema[key])) out.set(key, this.convert(schema[key]))
    for (const key of schemaListKeywords) {
      const list = schema[key]
      if (Array.isArray(list) && list.length > 0) out.set(key, list.map((each) => this.convert(each)))
    }
    const { patternProperties, dependentSchemas } = schema
    if (isObject(patternProperties)) {
      const valid: Array<[string, unknown]> = []
      for (const [name, each] of Object.entries(patternProperties)) {
        const pattern = toUnicodePattern(name)
        if (pattern !== undefined) valid.push([pattern, each])
      }
      out.set('patternProperties', this.#convertMap(valid))
    }
    if (isObject(dependentSchemas)) out.set('dependentSchemas', this.#convertMap(Object.entries(dependentSchemas)))
  }

  #convertMap (schemas: Array<[string, unknown]>): JsonSchema {
    return Object.fromEntries(
      schemas.filter(([, each]) => isSchema(each)).map(([name, each]) => [name, this.convert(each)])
    )
  }
}

/**
 * Converts exclusive bounds: up to OpenAPI 3.0, `exclusiveMinimum: true` makes `minimum` exclusive; likewise for max.
 */
function convertExclusiveBounds (schema: Record<string, unknown>, out: ConvertedKeywords): void {
  for (const [exclusive, bound] of [['exclusiveMinimum', 'minimum'], ['exclusiveMaximum', 'maximum']] as const) {
    if (schema[exclusive] !== true || !out.has(bound)) continue
    out.set(exclusive, out.get(bound))
    out.delete(bound)
  }
}

/** Copies `enum` without duplicates, and `example` or `examples` as `examples`. */
function convertValues (schema: Record<string, unknown>, out: ConvertedKeywords): void {
  if (Array.isArray(schema.enum) && schema.enum.length > 0) {
    const seen = new Set<string>()
    out.set('enum', schema.enum.filter((each) => !seen.has(JSON.stringify(each)) && seen.add(JSON.stringify(each))))
  }
  if (schema.example !== undefined) out.set('examples', [schema.example])
  else if (Array.isArray(schema.examples)) out.set('examples', schema.examples)
}

/** Converts `nullable: true` (OpenAPI 3.0) or `x-nullable: true` (Swagger): null becomes a valid value. */
function withNullable (schema: Record<string, unknown>, converted: JsonSchema): JsonSchema {
  if (schema.nullable !== true && schema['x-nullable'] !== true) return converted
  const { type, enum: values } = converted
  if (typeof type === 'string') {
    const nullable: JsonSchema = { ...converted, type: type === 'null' ? type : [type, 'null'] }
    return Array.isArray(values) && !values.includes(null) ? { ...nullable, enum: [...values, null] } : nullable
  }
  const isRestricted = ['allOf', 'anyOf', 'oneOf', 'enum'].some((key) => Object.hasOwn(converted, key))
  if (type !== undefined || !isRestricted) return converted
  const { description, title, ...rest } = converted
  return {
    ...(title === undefined ? {} : { title }),
    ...(description === undefined ? {} : { description }),
    anyOf: [rest, { type: 'null' }]
  }
}
