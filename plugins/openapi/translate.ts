import { isObject } from '../../protocol/json.ts'
import { resolveRef } from '../json-schema/resolve-ref.ts'
import { isScalar } from '../json-schema/schema-types.ts'
import {
  keepsAllConstraints,
  annotationKeywords,
  isPortable,
  isNullOnly,
  hasNoRef,
  translateEnum,
  translateKeywords,
  translateType,
  type JsonObject
} from './keywords.ts'

/** What a schema is in OpenAPI 3.0.3. `exact`: it takes what the original takes; else it takes more, never less. */
export interface Translated { readonly schema: JsonObject, readonly exact: boolean }

const anything: Translated = { schema: {}, exact: true }
const unknown: Translated = { schema: {}, exact: false }

/** Keywords that OpenAPI 3.0.3 cannot say. */
const unsayable = new Set([
  'patternProperties',
  'propertyNames',
  'contains',
  'dependentRequired',
  'dependentSchemas',
  'dependencies',
  'unevaluatedProperties',
  'unevaluatedItems',
  'prefixItems',
  'additionalItems',
  'if',
  'then',
  'else',
  '$dynamicRef',
  '$recursiveRef',
  'nullable'
])
const isSayable = (schema: JsonObject): boolean => {
  for (const keyword of Object.keys(schema)) if (unsayable.has(keyword)) return false
  return hasNoRef(schema.enum) && hasNoRef(schema.const)
}
/** Keywords that make a schema of others. */
const combining = ['allOf', 'anyOf', 'oneOf', 'then', 'not']
/** A schema of no more characters than this is written where it is meant, not referred to. */
const small = 500

/**
 * Says JSON Schema (2020-12, and the drafts before it) in the dialect of OpenAPI 3.0.3. What that has no words for is left out in the
 * direction of taking more. What a schema refers to becomes a component; so recursion needs no special care.
 */
export class SchemaTranslator {
  /** What is referred to, by name. */
  readonly components = new Map<string, JsonObject>()
  readonly #root: unknown
  readonly #prefix: string
  /** Up to draft 7, what stands beside `$ref` is ignored. */
  readonly #draft7: boolean
  readonly #known = new Map<unknown, { name: string, exact: boolean }>()

  /** @param prefix makes the components' names unlike those of other translations */
  constructor (root: unknown, prefix: string) {
    this.#root = root
    this.#prefix = prefix
    this.#draft7 = isObject(root) && typeof root.$schema === 'string' && /draft-0[3-7]/.test(root.$schema)
  }

  /** One schema that stands in the root, or the root itself. */
  translate (schema: unknown): Translated {
    if (schema === true) return anything
    if (schema === false) return { schema: { not: {} }, exact: true }
    if (!isObject(schema)) return unknown
    if (isPortable(schema)) return { schema, exact: true }
    if (typeof schema.$ref === 'string') return this.#reference(schema.$ref, schema)
    const { own, among } = translateType(schema)
    const object = this.#object(schema)
    const out = Object.assign(translateKeywords(schema), own, translateEnum(schema, own), object.schema)
    let exact = object.exact && isSayable(schema) && keepsAllConstraints(schema, out)
    const list =
      own.type === 'array'
        ? out
        : (among?.find(({ type }) => type === 'array') ??
          (schema.type === undefined && ('items' in schema || 'prefixItems' in schema) ? out : undefined))
    if (list && !this.#list(schema, list, out)) exact = false
    if (!among && !combining.some((keyword) => schema[keyword] !== undefined)) return { schema: out, exact }
    const parts = this.#parts(schema)
    if (among) parts.unshift({ schema: { anyOf: among }, exact: true })
    return { schema: join(out, parts.map((part) => part.schema)), exact: exact && parts.every((part) => part.exact) }
  }

  /** The schemas that it asks for besides. */
  #parts (schema: JsonObject): Translated[] {
    const parts: Translated[] = []
    if (Array.isArray(schema.allOf)) for (const each of schema.allOf) parts.push(this.translate(each))
    for (const keyword of ['anyOf', 'oneOf'] as const) {
      if (Array.isArray(schema[keyword]) && schema[keyword].length > 0) parts.push(this.#choice(keyword, schema[keyword]))
    }
    if (schema.then !== undefined && schema.else !== undefined && schema.if !== undefined) {
      parts.push({ schema: { anyOf: [this.translate(schema.then).schema, this.translate(schema.else).schema] }, exact: false })
    }
    if (schema.not !== undefined) {
      // What takes more than the original would forbid more.
      const forbidden = this.translate(schema.not)
      parts.push(forbidden.exact ? { schema: { not: forbidden.schema }, exact: true } : unknown)
    }
    return parts
  }

  #reference (ref: string, schema: JsonObject): Translated {
    const { $ref: _, ...beside } = schema
    const rest = this.translate(
      this.#draft7 ? Object.fromEntries(Object.entries(beside).filter(([key]) => annotationKeywords.has(key))) : beside
    )
    const target = this.#follow(ref)
    if (target === undefined) return { schema: rest.schema, exact: false }
    const said = this.#known.has(target) ? this.#component(ref, target) : this.#inlined(target) ?? this.#component(ref, target)
    return { schema: join(rest.schema, [said.schema]), exact: said.exact && rest.exact }
  }

  /** Where a reference leads in the end; undefined: nowhere, or in a circle. */
  #follow (ref: string): unknown {
    let target = resolveRef(ref, this.#root)
    for (
      const seen = new Set<unknown>();
      isObject(target) && typeof target.$ref === 'string' && Object.keys(target).length === 1;
      target = resolveRef(target.$ref, this.#root)
    ) {
      if (seen.has(target)) return undefined
      seen.add(target)
    }
    return target
  }

  /** A small schema of a single value, which refers to nothing. */
  #inlined (target: unknown): Translated | undefined {
    if (typeof target === 'boolean') return this.translate(target)
    if (!isObject(target) || !isScalar(target, this.#root)) return undefined
    const text = JSON.stringify(target)
    return text.length <= small && !text.includes('"$ref"') ? this.translate(target) : undefined
  }

  #component (ref: string, target: unknown): Translated {
    const known = this.#known.get(target)
    if (known) return { schema: { $ref: `#/components/schemas/${known.name}` }, exact: known.exact }
    const last = (ref.split('/').at(-1) ?? '').replace(/[^A-Za-z0-9_-]/g, '_')
    const hint = `${this.#prefix}.${last === '_' || last === '' ? 'Arguments' : last}`
    let name = hint
    for (let n = 2; this.components.has(name); n++) name = `${hint}.${n}`
    // Inside of itself it is not known yet whether it can be said exactly.
    const entry = { name, exact: false }
    this.#known.set(target, entry)
    this.components.set(name, {})
    const said = this.translate(target)
    this.components.set(name, said.schema)
    entry.exact = said.exact
    return { schema: { $ref: `#/components/schemas/${name}` }, exact: said.exact }
  }

  /** One of several: with `null` among two, the other one may be null. */
  #choice (keyword: 'anyOf' | 'oneOf', choices: unknown[]): Translated {
    const said = choices.map((each) => this.translate(each))
    const others = said.filter(({ schema }) => !isNullOnly(schema))
    const [only] = others
    if (
      only &&
      others.length === 1 &&
      said.length > 1 &&
      typeof only.schema.type === 'string' &&
      !['allOf', 'anyOf', 'oneOf', 'not'].some((each) => Object.hasOwn(only.schema, each))
    ) {
      const values = only.schema.enum
      return {
        schema: { ...only.schema, nullable: true, ...(Array.isArray(values) && !values.includes(null) ? { enum: [...values, null] } : {}) },
        exact: only.exact && only.schema.nullable !== true
      }
    }
    const exact = said.every((each) => each.exact)
    // What takes more may fit where the original did not: then it is two that fit.
    return { schema: { [exact ? keyword : 'anyOf']: said.map(({ schema }) => schema) }, exact }
  }

  #object (schema: JsonObject): Translated {
    if (schema.properties === undefined && schema.additionalProperties === undefined) return anything
    const out: JsonObject = {}
    let exact = true
    const { properties, additionalProperties: others, patternProperties } = schema
    if (isObject(properties)) {
      // Some readers take any member of that name for a reference.
      const names = Object.keys(properties).filter((name) => name !== '$ref')
      out.properties = Object.fromEntries(names.map((name) => {
        const property = this.translate(properties[name])
        exact &&= property.exact
        return [name, property.schema]
      }))
      if (Object.hasOwn(properties, '$ref')) return { schema: out, exact: false }
    }
    if (typeof others !== 'boolean' && !isObject(others)) return { schema: out, exact }
    const rest = this.translate(others)
    const patterned =
      isObject(patternProperties) && others !== true ? Object.values(patternProperties).map((each) => this.translate(each).schema) : []
    if (patterned.length > 0) out.additionalProperties = { anyOf: [...(others === false ? [] : [rest.schema]), ...patterned] }
    else out.additionalProperties = typeof others === 'boolean' ? others : rest.schema
    return { schema: out, exact: exact && rest.exact }
  }

  /** Says of a list in `list` what its elements are, and of what it stands in how many. False: not exactly. */
  #list (schema: JsonObject, list: JsonObject, out: JsonObject): boolean {
    const items = this.#items(schema)
    list.items = items.schema
    const { first, rest } = elementsOf(schema)
    if (first.length > 0 && rest === false) {
      out.maxItems = Math.min(first.length, typeof out.maxItems === 'number' ? out.maxItems : Infinity)
    }
    return items.exact
  }

  /** What any element of a list may be. */
  #items (schema: JsonObject): Translated {
    const { first, rest } = elementsOf(schema)
    if (first.length === 0) return this.translate(rest)
    const all = [...first, ...(rest === false ? [] : [rest])].map((each) => this.translate(each).schema)
    if (all.some((each) => Object.keys(each).length === 0)) return unknown
    const different = [...new Map(all.map((each) => [JSON.stringify(each), each])).values()]
    return { schema: different.length === 1 && different[0] ? different[0] : { anyOf: different }, exact: false }
  }
}

/** What the elements of a list are: the first ones each by itself, and the rest. */
function elementsOf ({ items, prefixItems, additionalItems }: JsonObject): { first: unknown[], rest: unknown } {
  if (Array.isArray(items)) return { first: items, rest: additionalItems ?? true }
  return { first: Array.isArray(prefixItems) ? prefixItems : [], rest: items ?? true }
}

/** One schema that asks for all of several. The first stays as it is, with the others beside it where they have room. */
function join (first: JsonObject, others: JsonObject[]): JsonObject {
  const out = { ...first }
  const left: JsonObject[] = []
  for (const other of others) {
    const keys = Object.keys(other)
    const bare = keys.every((key) => !Object.hasOwn(out, key))
    if (keys.length === 0) continue
    if (keys[0] === '$ref') left.push(other)
    // A choice of its own goes beside anything. More than that goes only beside what merely describes.
    else if (bare && (keys.length === 1 && ['anyOf', 'oneOf', 'not'].includes(keys[0] ?? ''))) Object.assign(out, other)
    else if (Object.keys(out).every((key) => annotationKeywords.has(key))) Object.assign(out, { ...other, ...out })
    else left.push(other)
  }
  if (left.length === 0) return out
  if (left.length === 1 && left[0] && Object.keys(out).length === 0) return left[0]
  return { ...out, allOf: [...(Array.isArray(out.allOf) ? out.allOf as JsonObject[] : []), ...left] }
}
