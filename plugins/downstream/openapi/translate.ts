import { isObject } from '../../../protocol/json.ts'
import { isScalarSchema, resolveRef } from '../../base/json-schema/index.ts'
import {
  joinSchemas, annotationKeywords, isNullOnly, translateEnum, translateKeywords, translateType, type JsonObject
} from './keywords.ts'

/** The keywords that combine other schemas. `then` stands for `if`, `then` and `else` together. */
const combiningKeywords = ['allOf', 'anyOf', 'oneOf', 'then']

/** Max length of a referenced schema that replaces the reference, in characters. */
const maxInlined = 500

/**
 * Translates JSON Schema (2020-12, or an earlier draft) to OpenAPI 3.0.3 schemas. Constraints that OpenAPI 3.0.3 cannot
 * express are dropped, so the translation accepts more. Therefore, `not` is dropped, and `oneOf` becomes `anyOf`: the
 * negation of a schema that accepts more would accept less, and a value may match more schemas than before. A
 * referenced schema becomes a component, which allows recursion.
 */
export class SchemaTranslator {
  /** The component schemas to which the translations refer, by name. */
  readonly components = new Map<string, JsonObject>()
  readonly #root: unknown
  readonly #prefix: string
  /** Whether the root is a schema of draft 7 or earlier, where keywords beside `$ref` are ignored. */
  readonly #isDraft7: boolean
  /** The names of the components by the schemas from which they were translated. */
  readonly #componentBySchema = new Map<unknown, string>()

  /**
   * @param root the schema in which references are resolved
   * @param prefix the start of component names, which distinguishes components of different translators
   */
  constructor (root: unknown, prefix: string) {
    this.#root = root
    this.#prefix = prefix
    this.#isDraft7 = isObject(root) && typeof root.$schema === 'string' && /draft-0[3-7]/.test(root.$schema)
  }

  /** Translates the root, or a schema within it. */
  translate (schema: unknown): JsonObject {
    if (schema === false) return { not: {} }
    if (!isObject(schema)) return {}
    if (typeof schema.$ref === 'string') return this.#reference(schema.$ref, schema)
    const { own, alternatives } = translateType(schema)
    const out = Object.assign(translateKeywords(schema), own, translateEnum(schema, own), this.#object(schema))
    const array = arraySchemaOf(schema, own, alternatives, out)
    if (array) this.#array(schema, array, out)
    if (!alternatives && !combiningKeywords.some((keyword) => schema[keyword] !== undefined)) return out
    const parts = this.#combined(schema)
    if (alternatives) parts.unshift({ anyOf: alternatives })
    return joinSchemas(out, parts)
  }

  /** Translates the combining keywords to a list of schemas. A value must match all of them. */
  #combined (schema: JsonObject): JsonObject[] {
    const parts: JsonObject[] = []
    if (Array.isArray(schema.allOf)) for (const each of schema.allOf) parts.push(this.translate(each))
    for (const choices of [schema.anyOf, schema.oneOf]) {
      if (Array.isArray(choices) && choices.length > 0) parts.push(this.#choice(choices))
    }
    if (schema.then !== undefined && schema.else !== undefined && schema.if !== undefined) {
      parts.push({ anyOf: [this.translate(schema.then), this.translate(schema.else)] })
    }
    return parts
  }

  #reference (ref: string, schema: JsonObject): JsonObject {
    const { $ref: _, ...allSiblings } = schema
    const siblings = this.#isDraft7
      ? Object.fromEntries(Object.entries(allSiblings).filter(([key]) => annotationKeywords.has(key)))
      : allSiblings
    const beside = this.translate(siblings)
    const target = this.#resolve(ref)
    if (target === undefined) return beside
    const inlined = this.#componentBySchema.has(target) ? undefined : this.#inline(target)
    return joinSchemas(beside, [inlined ?? this.#component(ref, target)])
  }

  /** Returns the schema at the end of a chain of references; undefined if it leads nowhere, or is a cycle. */
  #resolve (ref: string): unknown {
    const visited = new Set<unknown>()
    let target = resolveRef(ref, this.#root)
    while (isObject(target) && typeof target.$ref === 'string' && Object.keys(target).length === 1) {
      if (visited.has(target)) return undefined
      visited.add(target)
      target = resolveRef(target.$ref, this.#root)
    }
    return target
  }

  /** Returns the translation of a boolean schema, or of a small scalar schema without references; else undefined. */
  #inline (target: unknown): JsonObject | undefined {
    if (typeof target === 'boolean') return this.translate(target)
    if (!isObject(target) || !isScalarSchema(target, this.#root)) return undefined
    const text = JSON.stringify(target)
    return text.length <= maxInlined && !text.includes('"$ref"') ? this.translate(target) : undefined
  }

  /** Returns a reference to the component of a schema. The schema is translated when it is first referred to. */
  #component (ref: string, target: unknown): JsonObject {
    const existing = this.#componentBySchema.get(target)
    if (existing !== undefined) return { $ref: `#/components/schemas/${existing}` }
    const last = (ref.split('/').at(-1) ?? '').replace(/[^A-Za-z0-9_-]/g, '_')
    const base = `${this.#prefix}.${last === '_' || last === '' ? 'Arguments' : last}`
    let name = base
    for (let count = 2; this.components.has(name); count++) name = `${base}.${count}`
    this.#componentBySchema.set(target, name)
    // The name is taken while the component itself is translated.
    this.components.set(name, {})
    this.components.set(name, this.translate(target))
    return { $ref: `#/components/schemas/${name}` }
  }

  /**
   * Translates the choices of `anyOf` or `oneOf`. A choice between null and a schema of a single type becomes that
   * schema with `nullable`.
   */
  #choice (choices: unknown[]): JsonObject {
    const translated = choices.map((each) => this.translate(each))
    const [other, ...more] = translated.filter((schema) => !isNullOnly(schema))
    if (!other || more.length > 0 || translated.length === 1 || !hasSingleType(other)) return { anyOf: translated }
    const nullable: JsonObject = { ...other, nullable: true }
    if (Array.isArray(other.enum) && !other.enum.includes(null)) nullable.enum = [...other.enum as unknown[], null]
    return nullable
  }

  /** Translates the keywords of objects. */
  #object (schema: JsonObject): JsonObject {
    const out: JsonObject = {}
    const { properties, additionalProperties, patternProperties } = schema
    if (isObject(properties)) {
      // Some parsers treat any member named $ref as a reference.
      const names = Object.keys(properties).filter((name) => name !== '$ref')
      out.properties = Object.fromEntries(names.map((name) => [name, this.translate(properties[name])]))
      if (Object.hasOwn(properties, '$ref')) return out
    }
    if (typeof additionalProperties !== 'boolean' && !isObject(additionalProperties)) return out
    const additional = this.translate(additionalProperties)
    // OpenAPI treats properties that match a pattern as additional ones, so they must be accepted there.
    const byPattern = isObject(patternProperties) && additionalProperties !== true
      ? Object.values(patternProperties)
      : []
    if (byPattern.length > 0) {
      const schemas = byPattern.map((each) => this.translate(each))
      out.additionalProperties = { anyOf: additionalProperties === false ? schemas : [additional, ...schemas] }
    } else {
      out.additionalProperties = typeof additionalProperties === 'boolean' ? additionalProperties : additional
    }
    return out
  }

  /**
   * Sets the keywords of arrays.
   * @param array the schema that gets `items`
   * @param out the schema that gets `maxItems`
   */
  #array (schema: JsonObject, array: JsonObject, out: JsonObject): void {
    array.items = this.#items(schema)
    const { prefixItems, items: rest } = itemSchemasOf(schema)
    if (prefixItems.length > 0 && rest === false) {
      out.maxItems = Math.min(prefixItems.length, typeof out.maxItems === 'number' ? out.maxItems : Infinity)
    }
  }

  /** Returns a schema that accepts each element that the array may have, at any index. */
  #items (schema: JsonObject): JsonObject {
    const { prefixItems, items } = itemSchemasOf(schema)
    if (prefixItems.length === 0) return this.translate(items)
    const schemas = [...prefixItems, ...(items === false ? [] : [items])].map((each) => this.translate(each))
    if (schemas.some((each) => Object.keys(each).length === 0)) return {}
    const [first, ...others] = new Map(schemas.map((each) => [JSON.stringify(each), each])).values()
    return first && others.length === 0 ? first : { anyOf: [first, ...others] }
  }
}

/**
 * Returns the schema that gets the keywords of arrays: the translation as a whole, or its alternative for arrays;
 * undefined if the schema allows no arrays, or does not mention them.
 */
function arraySchemaOf (
  schema: JsonObject,
  own: JsonObject,
  alternatives: readonly JsonObject[] | undefined,
  out: JsonObject
): JsonObject | undefined {
  if (own.type === 'array') return out
  const alternative = alternatives?.find(({ type }) => type === 'array')
  if (alternative) return alternative
  return schema.type === undefined && ('items' in schema || 'prefixItems' in schema) ? out : undefined
}

/** Whether a schema has a single type and no combining keyword. */
const hasSingleType = (schema: JsonObject): boolean =>
  typeof schema.type === 'string' && !Object.hasOwn(schema, 'allOf') && !Object.hasOwn(schema, 'anyOf')

/**
 * Returns `prefixItems` and `items` with their meanings in draft 2020-12, to which `items` and `additionalItems` of
 * earlier drafts are converted.
 */
function itemSchemasOf (
  { items, prefixItems, additionalItems }: JsonObject
): { prefixItems: unknown[], items: unknown } {
  if (Array.isArray(items)) return { prefixItems: items, items: additionalItems ?? true }
  return { prefixItems: Array.isArray(prefixItems) ? prefixItems : [], items: items ?? true }
}
