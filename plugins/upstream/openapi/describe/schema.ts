import { isObject } from '../../../../protocol/json.ts'
import {
  isSchema,
  isString,
  isType,
  dropsPattern,
  toPattern,
  copiedKeywords,
  schemaKeywords,
  schemaListKeywords,
  relaxed,
  type JsonSchema
} from './keywords.ts'
import { LossDetector } from './losses.ts'
import { DescriptionError } from '../problems.ts'
import type { References } from './refs.ts'

/**
 * LoopBudget the schemas of one description into JSON Schema 2020-12. What is written there as a reference stays one, to `$defs`;
 * what no schema may hold is left out, so that each result is valid, and takes more then, never less. Schemas are those of requests: what is `readOnly` goes.
 */
export class SchemaConverter {
  readonly #refs: References
  readonly #losses: LossDetector
  /** OpenAPI 3.1 and later, where a schema is one of 2020-12 already. */
  readonly #modern: boolean
  /** The name in `$defs` of each reference, and the other way round. */
  readonly #names = new Map<string, string>()
  readonly #byName = new Map<string, string>()
  readonly #definitions = new Map<string, JsonSchema>()

  constructor (refs: References, modern: boolean) {
    this.#refs = refs
    this.#losses = new LossDetector(refs)
    this.#modern = modern
  }

  /** @throws DescriptionError for references that cannot be followed */
  convert (schema: unknown): JsonSchema {
    if (typeof schema === 'boolean') return schema ? {} : { not: {} }
    if (!isObject(schema)) return {}
    if (typeof schema.$ref === 'string') return this.#reference(schema, schema.$ref)
    const out = new Map<string, unknown>()
    for (const [key, isRight] of copiedKeywords) if (Object.hasOwn(schema, key) && isRight(schema[key])) out.set(key, schema[key])
    const pattern = toPattern(schema.pattern)
    if (pattern !== undefined) out.set('pattern', pattern)
    this.#type(schema, out)
    this.#bounds(schema, out)
    this.#values(schema, out)
    this.#object(schema, out)
    this.#array(schema, out)
    for (const key of schemaKeywords) if (isSchema(schema[key])) out.set(key, this.convert(schema[key]))
    for (const key of schemaListKeywords) {
      const list = schema[key]
      if (Array.isArray(list) && list.length > 0) out.set(key, list.map((each) => this.convert(each)))
    }
    const { patternProperties, dependentSchemas } = schema
    if (isObject(patternProperties)) {
      out.set(
        'patternProperties',
        this.#map(
          Object.entries(patternProperties).flatMap(([name, each]) => {
            const pattern = toPattern(name)
            return pattern === undefined ? [] : [[pattern, each]]
          })
        )
      )
    }
    if (isObject(dependentSchemas)) out.set('dependentSchemas', this.#map(Object.entries(dependentSchemas)))
    const said = Object.fromEntries(out)
    const turned: unknown[] = [schema.not, schema.if, ...Array.isArray(schema.oneOf) ? schema.oneOf : []]
    const safe = turned.some((each) => this.#losses.isLossy(each)) ? relaxed(said) : said
    return this.#modern ? safe : this.#nullable(schema, safe)
  }

  /** The definition that a name in `$defs` stands for. */
  definition (name: string): JsonSchema {
    const known = this.#definitions.get(name)
    if (known) return known
    const ref = this.#byName.get(name)
    if (ref === undefined) return {}
    const found = this.#refs.lookUp(ref)
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
    const { properties, required, additionalProperties, dependentRequired, patternProperties } = schema
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
    if (isSchema(additionalProperties) && !dropsPattern(patternProperties)) {
      out.set('additionalProperties', typeof additionalProperties === 'boolean' ? additionalProperties : this.convert(additionalProperties))
    }
    if (isObject(dependentRequired)) {
      const lists = Object.entries(dependentRequired).flatMap(([name, each]) =>
        Array.isArray(each) ? [[name, [...new Set(each.filter(isString))]] as const] : []
      )
      out.set('dependentRequired', Object.fromEntries(lists))
    }
  }

  #isReadOnly (schema: unknown): boolean {
    if (!isObject(schema)) return false
    if (schema.readOnly === true) return true
    return typeof schema.$ref === 'string' && this.#refs.resolveObject(schema)?.readOnly === true
  }

  #array (schema: Record<string, unknown>, out: Map<string, unknown>): void {
    const { items } = schema
    // Older drafts list the schemas of the first items here.
    if (Array.isArray(items)) {
      if (items.length > 0) {
        out.set(
          'prefixItems',
          items.map((each) => this.convert(each))
        )
      }
    } else if (isSchema(items)) out.set('items', this.convert(items))
  }

  #map (schemas: Array<[string, unknown]>): JsonSchema {
    return Object.fromEntries(schemas.filter(([, each]) => isSchema(each)).map(([name, each]) => [name, this.convert(each)]))
  }

  /** Up to 3.0 `nullable` says beside the type that null will do as well. */
  #nullable (schema: Record<string, unknown>, said: JsonSchema): JsonSchema {
    if (schema.nullable !== true && schema['x-nullable'] !== true) return said
    const { type, enum: values } = said
    if (typeof type === 'string') {
      return {
        ...said,
        type: type === 'null' ? type : [type, 'null'],
        ...(Array.isArray(values) && !values.includes(null) ? { enum: [...values, null] } : {})
      }
    }
    if (type !== undefined || !['allOf', 'anyOf', 'oneOf', 'enum'].some((key) => Object.hasOwn(said, key))) return said
    const { description, title, ...rest } = said
    return { ...title === undefined ? {} : { title }, ...description === undefined ? {} : { description }, anyOf: [rest, { type: 'null' }] }
  }
}
