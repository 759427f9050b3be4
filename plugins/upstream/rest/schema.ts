import { isObject } from '../../../protocol/json.ts'
import { DescriptionError } from './problems.ts'
import type { Refs } from './refs.ts'

/** A JSON Schema of 2020-12. */
export type JsonSchema = Record<string, unknown>

const types = new Set(['string', 'number', 'integer', 'boolean', 'object', 'array', 'null'])
const isType = (value: unknown): value is string => typeof value === 'string' && types.has(value)
const isNumber = (value: unknown): boolean => typeof value === 'number' && Number.isFinite(value)
const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0
const isText = (value: unknown): boolean => typeof value === 'string'
const isFlag = (value: unknown): boolean => typeof value === 'boolean'
const isSchema = (value: unknown): boolean => isObject(value) || typeof value === 'boolean'

/** Keywords that are taken as they are, if they are what they should be. */
const plain: Readonly<Record<string, (value: unknown) => boolean>> = {
  title: isText,
  description: isText,
  format: isText,
  contentEncoding: isText,
  contentMediaType: isText,
  pattern: (value) => { try { return typeof value === 'string' && new RegExp(value, 'u') instanceof RegExp } catch { return false } },
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
  uniqueItems: isFlag,
  deprecated: isFlag,
  writeOnly: isFlag,
  const: () => true,
  default: () => true
}
const schemaKeywords = ['not', 'if', 'then', 'else', 'contains', 'propertyNames', 'unevaluatedItems', 'unevaluatedProperties', 'contentSchema'] as const
const schemaLists = ['allOf', 'anyOf', 'oneOf', 'prefixItems'] as const
const schemaMaps = ['patternProperties', 'dependentSchemas'] as const

/**
 * Turns the schemas of one description into JSON Schema 2020-12. What is written there as a reference stays one, to `$defs`;
 * what no schema may hold is left out, so that each result is valid. Schemas are those of requests: what is `readOnly` goes.
 */
export class Schemas {
  readonly #refs: Refs
  /** OpenAPI 3.1 and later, where a schema is one of 2020-12 already. */
  readonly #modern: boolean
  /** The name in `$defs` of each reference, and the other way round. */
  readonly #names = new Map<string, string>()
  readonly #byName = new Map<string, string>()
  readonly #definitions = new Map<string, JsonSchema>()

  constructor (refs: Refs, modern: boolean) {
    this.#refs = refs
    this.#modern = modern
  }

  /** @throws DescriptionError for references that cannot be followed */
  convert (schema: unknown): JsonSchema {
    if (typeof schema === 'boolean') return schema ? {} : { not: {} }
    if (!isObject(schema)) return {}
    if (typeof schema.$ref === 'string') return this.#reference(schema, schema.$ref)
    const out = new Map<string, unknown>()
    for (const [key, isRight] of Object.entries(plain)) if (Object.hasOwn(schema, key) && isRight(schema[key])) out.set(key, schema[key])
    this.#type(schema, out)
    this.#bounds(schema, out)
    this.#values(schema, out)
    this.#object(schema, out)
    this.#array(schema, out)
    for (const key of schemaKeywords) if (isSchema(schema[key])) out.set(key, this.convert(schema[key]))
    for (const key of schemaLists) {
      const list = schema[key]
      if (Array.isArray(list) && list.length > 0) out.set(key, list.map((each) => this.convert(each)))
    }
    for (const key of schemaMaps) if (isObject(schema[key])) out.set(key, this.#map(schema[key], key === 'patternProperties'))
    return this.#modern ? Object.fromEntries(out) : this.#nullable(schema, out)
  }

  /** The definition that a name in `$defs` stands for. */
  definition (name: string): JsonSchema {
    const known = this.#definitions.get(name)
    if (known) return known
    const ref = this.#byName.get(name)
    if (ref === undefined) return {}
    const found = this.#refs.find(ref)
    if (!isSchema(found)) throw new DescriptionError(`the reference ${JSON.stringify(ref)} leads to no schema`)
    const definition = this.convert(found)
    this.#definitions.set(name, definition)
    return definition
  }

  #reference (schema: Record<string, unknown>, ref: string): JsonSchema {
    const target = { $ref: `#/$defs/${this.#nameOf(ref)}` }
    // Up to 3.0 what stands beside a reference is ignored; a description does no harm.
    const { $ref: _, ...beside } = schema
    if (this.#modern) return { ...this.convert(beside), ...target }
    return typeof schema.description === 'string' ? { ...target, description: schema.description } : target
  }

  /** A name for `$defs` that needs no escaping: of the reference's last step, unlike any other. */
  #nameOf (ref: string): string {
    const known = this.#names.get(ref)
    if (known !== undefined) return known
    // Where it leads is looked at now: a tool must not come to be with a reference that nobody can follow.
    this.#refs.resolve({ $ref: ref })
    const last = ref.slice(ref.lastIndexOf('/') + 1).replace(/[^\w.-]+/g, '_')
    const base = last === '' || last in Object.prototype ? `schema_${last}` : last
    let name = base
    for (let count = 2; this.#byName.has(name); count++) name = `${base}_${count}`
    this.#names.set(ref, name)
    this.#byName.set(name, ref)
    return name
  }

  #type (schema: Record<string, unknown>, out: Map<string, unknown>): void {
    const { type, format } = schema
    if (type === 'file') { out.set('type', 'string'); out.set('contentEncoding', 'base64'); return }
    if (isType(type)) out.set('type', type)
    else if (Array.isArray(type)) {
      const valid = [...new Set(type.filter(isType))]
      if (valid.length > 0) out.set('type', valid.length === 1 ? valid[0] : valid)
    }
    if (!this.#modern && type === 'string' && (format === 'binary' || format === 'byte')) {
      out.set('contentEncoding', 'base64')
      // Not the bytes themselves: JSON cannot hold them.
      if (format === 'binary') out.delete('format')
    }
  }

  /** Up to 3.0 `exclusiveMinimum` says of `minimum` that it is one. */
  #bounds (schema: Record<string, unknown>, out: Map<string, unknown>): void {
    for (const [flag, bound] of [['exclusiveMinimum', 'minimum'], ['exclusiveMaximum', 'maximum']] as const) {
      if (schema[flag] !== true || !out.has(bound)) continue
      out.set(flag, out.get(bound))
      out.delete(bound)
    }
  }

  #values (schema: Record<string, unknown>, out: Map<string, unknown>): void {
    if (Array.isArray(schema.enum) && schema.enum.length > 0) {
      const seen = new Set<string>()
      out.set('enum', schema.enum.filter((each) => !seen.has(JSON.stringify(each)) && seen.add(JSON.stringify(each))))
    }
    if (schema.example !== undefined) out.set('examples', [schema.example])
    else if (Array.isArray(schema.examples)) out.set('examples', schema.examples)
  }

  #object (schema: Record<string, unknown>, out: Map<string, unknown>): void {
    const { properties, required, additionalProperties, dependentRequired } = schema
    const hidden = new Set<string>()
    if (isObject(properties)) {
      const kept = Object.entries(properties).filter(([name, each]) => {
        if (this.#isReadOnly(each)) hidden.add(name)
        return isSchema(each) && !hidden.has(name)
      })
      out.set('properties', Object.fromEntries(kept.map(([name, each]) => [name, this.convert(each)])))
    }
    if (Array.isArray(required)) {
      const names = [...new Set(required.filter((each) => typeof each === 'string' && !hidden.has(each)))]
      if (names.length > 0) out.set('required', names)
    }
    if (isSchema(additionalProperties)) out.set('additionalProperties', typeof additionalProperties === 'boolean' ? additionalProperties : this.convert(additionalProperties))
    if (isObject(dependentRequired)) {
      const lists = Object.entries(dependentRequired).flatMap(([name, each]) => Array.isArray(each) ? [[name, [...new Set(each.filter(isText))]] as const] : [])
      out.set('dependentRequired', Object.fromEntries(lists))
    }
  }

  #isReadOnly (schema: unknown): boolean {
    if (!isObject(schema)) return false
    if (schema.readOnly === true) return true
    return typeof schema.$ref === 'string' && this.#refs.object(schema)?.readOnly === true
  }

  #array (schema: Record<string, unknown>, out: Map<string, unknown>): void {
    const { items } = schema
    // Older drafts list the schemas of the first items here.
    if (Array.isArray(items)) { if (items.length > 0) out.set('prefixItems', items.map((each) => this.convert(each))) } else if (isSchema(items)) out.set('items', this.convert(items))
  }

  #map (schemas: Record<string, unknown>, patterns: boolean): JsonSchema {
    return Object.fromEntries(Object.entries(schemas).filter(([name, each]) => isSchema(each) && (!patterns || plain.pattern?.(name))).map(([name, each]) => [name, this.convert(each)]))
  }

  /** Up to 3.0 `nullable` says beside the type that null will do as well. */
  #nullable (schema: Record<string, unknown>, out: Map<string, unknown>): JsonSchema {
    const type = out.get('type')
    const result = (): JsonSchema => Object.fromEntries(out)
    if (schema.nullable !== true && schema['x-nullable'] !== true) return result()
    if (typeof type === 'string') {
      if (type !== 'null') out.set('type', [type, 'null'])
      const values = out.get('enum')
      if (Array.isArray(values) && !values.includes(null)) out.set('enum', [...values, null])
      return result()
    }
    if (type !== undefined || !['allOf', 'anyOf', 'oneOf', 'enum'].some((key) => out.has(key))) return result()
    const { description, title, ...rest } = result()
    return { ...title === undefined ? {} : { title }, ...description === undefined ? {} : { description }, anyOf: [rest, { type: 'null' }] }
  }
}
