import { isObject } from '../../../protocol/json.ts'
import { isScalarSchema, resolveRef } from '../../base/json-schema/index.ts'
import {
  joinSchemas, annotationKeywords, isRefFree, isNullOnly, keepsAllConstraints, translateEnum,
  translateKeywords, translateType, type JsonObject
} from './keywords.ts'

/** A schema of OpenAPI 3.0.3. `isExact`: it accepts the same values as the original; otherwise it may accept more. */
interface TranslatedSchema { readonly schema: JsonObject, readonly isExact: boolean }

const acceptsAnything: TranslatedSchema = { schema: {}, isExact: true }
const inexactAnything: TranslatedSchema = { schema: {}, isExact: false }

/** Keywords that OpenAPI 3.0.3 cannot express. `nullable` is not in JSON Schema, so its meaning there is unknown. */
const unsupportedKeywords = new Set([
  'patternProperties', 'propertyNames', 'contains', 'dependentRequired', 'dependentSchemas', 'dependencies',
  'unevaluatedProperties', 'unevaluatedItems', 'prefixItems', 'additionalItems', 'if', 'then', 'else', '$dynamicRef',
  '$recursiveRef', 'nullable'
])
const isSupported = (schema: JsonObject): boolean => {
  for (const keyword of Object.keys(schema)) if (unsupportedKeywords.has(keyword)) return false
  return isRefFree(schema.enum) && isRefFree(schema.const)
}

/** The keywords that combine other schemas, or negate one. `then` stands for `if`, `then` and `else` together. */
const combiningKeywords = ['allOf', 'anyOf', 'oneOf', 'then', 'not']

/** Max length of a referenced schema that replaces the reference, in characters. */
const maxInlined = 500

/**
 * Translates JSON Schema (2020-12, or an earlier draft) to OpenAPI 3.0.3 schemas. Constraints that OpenAPI 3.0.3 cannot
 * express are dropped, so the translation accepts more. A referenced schema becomes a component, which allows
 * recursion.
 */
export class SchemaTranslator {
  /** The component schemas to which the translations refer, by name. */
  readonly components = new Map<string, JsonObject>()
  readonly #root: unknown
  readonly #prefix: string
  /** Whether the root is a schema of draft 7 or earlier, where keywords beside `$ref` are ignored. */
  readonly #isDraft7: boolean
  /** The names of the components by the schemas from which they were translated. */
  readonly #componentBySchema = new Map<unknown, { name: string, exact: boolean }>()

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
  translate (schema: unknown): TranslatedSchema {
    if (schema === true) return acceptsAnything
    if (schema === false) return { schema: { not: {} }, isExact: true }
    if (!isObject(schema)) return inexactAnything
    if (typeof schema.$ref === 'string') return this.#reference(schema.$ref, schema)
    const { own, alternatives } = translateType(schema)
    const object = this.#object(schema)
    const out = Object.assign(translateKeywords(schema), own, translateEnum(schema, own), object.schema)
    let exact = object.isExact && isSupported(schema) && keepsAllConstraints(schema, out)
    const array = arraySchemaOf(schema, own, alternatives, out)
    if (array && !this.#array(schema, array, out)) exact = false
    if (!alternatives && !combiningKeywords.some((keyword) => schema[keyword] !== undefined)) {
      return { schema: out, isExact: exact }
    }
    const parts = this.#combined(schema)
    if (alternatives) parts.unshift({ schema: { anyOf: alternatives }, isExact: true })
    return {
      schema: joinSchemas(out, parts.map((part) => part.schema)), isExact: exact && parts.every((part) => part.isExact)
    }
  }

  /** Translates the combining keywords to a list of schemas. A value must match all of them. */
  #combined (schema: JsonObject): TranslatedSchema[] {
    const parts: TranslatedSchema[] = []
    if (Array.isArray(schema.allOf)) for (const each of schema.allOf) parts.push(this.translate(each))
    for (const keyword of ['anyOf', 'oneOf'] as const) {
      if (Array.isArray(schema[keyword]) && schema[keyword].length > 0) {
        parts.push(this.#choice(keyword, schema[keyword]))
      }
    }
    if (schema.then !== undefined && schema.else !== undefined && schema.if !== undefined) {
      parts.push(
        { schema: { anyOf: [this.translate(schema.then).schema, this.translate(schema.else).schema] }, isExact: false }
      )
    }
    if (schema.not !== undefined) {
      // The negation of a schema that accepts more would accept less.
      const negated = this.translate(schema.not)
      parts.push(negated.isExact ? { schema: { not: negated.schema }, isExact: true } : inexactAnything)
    }
    return parts
  }

  #reference (ref: string, schema: JsonObject): TranslatedSchema {
    const { $ref: _, ...allSiblings } = schema
    const siblings = this.#isDraft7
      ? Object.fromEntries(Object.entries(allSiblings).filter(([key]) => annotationKeywords.has(key)))
      : allSiblings
    const beside = this.translate(siblings)
    const target = this.#resolve(ref)
    if (target === undefined) return { schema: beside.schema, isExact: false }
    const inlined = this.#componentBySchema.has(target) ? undefined : this.#inline(target)
    const translated = inlined ?? this.#component(ref, target)
    return { schema: joinSchemas(beside.schema, [translated.schema]), isExact: translated.isExact && beside.isExact }
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
  #inline (target: unknown): TranslatedSchema | undefined {
    if (typeof target === 'boolean') return this.translate(target)
    if (!isObject(target) || !isScalarSchema(target, this.#root)) return undefined
    const text = JSON.stringify(target)
    return text.length <= maxInlined && !text.includes('"$ref"') ? this.translate(target) : undefined
  }

  /** Returns a reference to the component of a schema. The schema is translated when it is first referred to. */
  #component (ref: string, target: unknown): TranslatedSchema {
    const existing = this.#componentBySchema.get(target)
    if (existing) return { schema: { $ref: `#/components/schemas/${existing.name}` }, isExact: existing.exact }
    const last = (ref.split('/').at(-1) ?? '').replace(/[^A-Za-z0-9_-]/g, '_')
    const base = `${this.#prefix}.${last === '_' || last === '' ? 'Arguments' : last}`
    let name = base
    for (let count = 2; this.components.has(name); count++) name = `${base}.${count}`
    // While the component itself is translated, it is unknown whether the translation is exact.
    const component = { name, exact: false }
    this.#componentBySchema.set(target, component)
    this.components.set(name, {})
    const translated = this.translate(target)
    this.components.set(name, translated.schema)
    component.exact = translated.isExact
    return { schema: { $ref: `#/components/schemas/${name}` }, isExact: translated.isExact }
  }

  /**
   * Translates `anyOf` or `oneOf`. A choice between null and a schema of a single type becomes that schema with
   * `nullable`.
   */
  #choice (keyword: 'anyOf' | 'oneOf', choices: unknown[]): TranslatedSchema {
    const translated = choices.map((each) => this.translate(each))
    const [other, ...more] = translated.filter(({ schema }) => !isNullOnly(schema))
    if (other && more.length === 0 && translated.length > 1 && hasSingleType(other.schema)) {
      const values = other.schema.enum
      const nullable: JsonObject = { ...other.schema, nullable: true }
      if (Array.isArray(values) && !values.includes(null)) nullable.enum = [...values, null]
      return { schema: nullable, isExact: other.isExact && other.schema.nullable !== true }
    }
    const exact = translated.every((each) => each.isExact)
    // With `oneOf`, a value that matches one original schema would be refused if it matches two translated schemas.
    return { schema: { [exact ? keyword : 'anyOf']: translated.map(({ schema }) => schema) }, isExact: exact }
  }

  /** Translates the keywords of objects. */
  #object (schema: JsonObject): TranslatedSchema {
    if (schema.properties === undefined && schema.additionalProperties === undefined) return acceptsAnything
    const out: JsonObject = {}
    let exact = true
    const { properties, additionalProperties, patternProperties } = schema
    if (isObject(properties)) {
      // Some parsers treat any member named $ref as a reference.
      const names = Object.keys(properties).filter((name) => name !== '$ref')
      out.properties = Object.fromEntries(names.map((name) => {
        const property = this.translate(properties[name])
        exact &&= property.isExact
        return [name, property.schema]
      }))
      if (Object.hasOwn(properties, '$ref')) return { schema: out, isExact: false }
    }
    if (typeof additionalProperties !== 'boolean' &&
      !isObject(additionalProperties)) return { schema: out, isExact: exact }
    const additional = this.translate(additionalProperties)
    // OpenAPI treats properties that match a pattern as additional ones, so they must be accepted there.
    const byPattern = isObject(patternProperties) && additionalProperties !== true
      ? Object.values(patternProperties)
      : []
    if (byPattern.length > 0) {
      const schemas = byPattern.map((each) => this.translate(each).schema)
      out.additionalProperties = { anyOf: additionalProperties === false ? schemas : [additional.schema, ...schemas] }
    } else {
      out.additionalProperties =
      typeof additionalProperties === 'boolean' ? additionalProperties : additional.schema
    }
    return { schema: out, isExact: exact && additional.isExact }
  }

  /**
   * Sets the keywords of arrays.
   * @param array the schema that gets `items`
   * @param out the schema that gets `maxItems`
   * @returns whether the translation is exact
   */
  #array (schema: JsonObject, array: JsonObject, out: JsonObject): boolean {
    const items = this.#items(schema)
    array.items = items.schema
    const { prefixItems, items: rest } = itemSchemasOf(schema)
    if (prefixItems.length > 0 && rest === false) {
      out.maxItems = Math.min(prefixItems.length, typeof out.maxItems === 'number' ? out.maxItems : Infinity)
    }
    return items.isExact
  }

  /** Returns a schema that accepts each element that the array may have, at any index. */
  #items (schema: JsonObject): TranslatedSchema {
    const { prefixItems, items } = itemSchemasOf(schema)
    if (prefixItems.length === 0) return this.translate(items)
    const schemas = [...prefixItems, ...(items === false ? [] : [items])].map((each) => this.translate(each).schema)
    if (schemas.some((each) => Object.keys(each).length === 0)) return inexactAnything
    const [first, ...others] = new Map(schemas.map((each) => [JSON.stringify(each), each])).values()
    return { schema: first && others.length === 0 ? first : { anyOf: [first, ...others] }, isExact: false }
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
  typeof schema.type === 'string' && !['allOf', 'anyOf', 'oneOf', 'not'].some((each) => Object.hasOwn(schema, each))

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
