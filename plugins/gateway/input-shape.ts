import { isObject } from '../../protocol/json.ts'

/** A type of JSON Schema. `number` is every number, whole ones too. */
export type SchemaType = 'null' | 'boolean' | 'integer' | 'number' | 'string' | 'array' | 'object'
const everyType: readonly SchemaType[] = ['null', 'boolean', 'integer', 'number', 'string', 'array', 'object']

const schemasIn = (value: unknown): unknown[] => Array.isArray(value) ? value : []

/** What a local `$ref` leads to; undefined: it leads out of the schema, or nowhere. */
export function lookUp (ref: string, root: unknown): unknown {
  if (!isObject(root)) return undefined
  const local = typeof root.$id === 'string' && ref.startsWith(`${root.$id}#`) ? ref.slice(root.$id.length) : ref
  if (local === '#' || (local !== '' && local === root.$id)) return root
  if (local.startsWith('#/')) return at(root, local)
  if (!local.startsWith('#')) return undefined
  const definitions = [root.$defs, root.definitions].flatMap((each) => isObject(each) ? Object.values(each) : [])
  return definitions.find((each) => isObject(each) && each.$anchor === local.slice(1))
}

function at (root: unknown, pointer: string): unknown {
  let found = root
  for (const token of pointer.slice(2).split('/')) {
    const key = decoded(token).replaceAll('~1', '/').replaceAll('~0', '~')
    if (!(isObject(found) || Array.isArray(found)) || !Object.hasOwn(found, key)) return undefined
    found = (found as Record<string, unknown>)[key]
  }
  return found
}

function decoded (token: string): string {
  try {
    return decodeURIComponent(token)
  } catch {
    return token
  }
}

const single: ReadonlyMap<unknown, readonly SchemaType[]> = new Map(everyType.map((type) => [type, type === 'number' ? ['integer', 'number'] : [type]]))
const typesNamed = (type: unknown): readonly SchemaType[] => Array.isArray(type) ? type.flatMap((each) => single.get(each) ?? []) : single.get(type) ?? []
/** What else than `type` says of which types a value may be. */
const narrowing = ['enum', 'const', '$ref', 'allOf', 'anyOf', 'oneOf']

/** The types that a value may have by a schema, as far as can be told; all of them where it says nothing. */
export function typesOf (schema: unknown, root: unknown, seen?: Map<unknown, readonly SchemaType[]>): readonly SchemaType[] {
  if (schema === false) return []
  if (!isObject(schema)) return everyType
  let types = schema.type === undefined ? everyType : typesNamed(schema.type)
  if (!narrowing.some((keyword) => keyword in schema)) return types
  seen ??= new Map()
  const known = seen.get(schema)
  if (known) return known
  seen.set(schema, everyType)
  if (Array.isArray(schema.enum)) types = both(types, schema.enum.map(typeOf))
  if (Object.hasOwn(schema, 'const')) types = both(types, [typeOf(schema.const)])
  if (typeof schema.$ref === 'string') types = both(types, typesOf(lookUp(schema.$ref, root), root, seen))
  for (const each of schemasIn(schema.allOf)) types = both(types, typesOf(each, root, seen))
  for (const choices of [schema.anyOf, schema.oneOf]) {
    if (!Array.isArray(choices)) continue
    const union: SchemaType[] = []
    for (const each of choices) union.push(...typesOf(each, root, seen))
    types = both(types, union)
  }
  seen.set(schema, types)
  return types
}

/** Whether a schema takes a value, as far as the types and the values that it names tell. */
export function takes (schema: unknown, value: unknown, root: unknown, seen?: Map<unknown, boolean>): boolean {
  if (!isObject(schema)) return schema !== false
  const isTyped = schema.type === undefined || typesNamed(schema.type).includes(typeOf(value))
  if (!isTyped || !narrowing.some((keyword) => keyword in schema)) return isTyped
  const known = (seen ??= new Map()).get(schema)
  if (known !== undefined) return known
  seen.set(schema, true)
  const isTaken = (each: unknown): boolean => takes(each, value, root, seen)
  const isOne = (each: unknown): boolean => each === value || (typeof each === 'object' && typeof value === 'object' && each !== null && value !== null)
  const result = (!Array.isArray(schema.enum) || schema.enum.some(isOne)) &&
    (!Object.hasOwn(schema, 'const') || isOne(schema.const)) &&
    (typeof schema.$ref !== 'string' || isTaken(lookUp(schema.$ref, root))) &&
    schemasIn(schema.allOf).every(isTaken) &&
    [schema.anyOf, schema.oneOf].every((choices) => !Array.isArray(choices) || choices.some(isTaken))
  seen.set(schema, result)
  return result
}

const both = (some: readonly SchemaType[], others: readonly SchemaType[]): readonly SchemaType[] => some.filter((type) => others.includes(type))

function typeOf (value: unknown): SchemaType {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number'
  return typeof value === 'string' || typeof value === 'boolean' ? typeof value as 'string' | 'boolean' : 'object'
}

/** What a tool's input schema says of its parameters, wherever in it that stands. */
export interface InputShape {
  /** By name; in the order they are first named. Those that a value may not have are not there. */
  readonly properties: ReadonlyMap<string, unknown>
  readonly required: ReadonlySet<string>
  /** Of parameters that have no name here; undefined: not said. */
  readonly others: unknown
  /** True when a list of parameters says it all: none has its name by a pattern, or in one of several cases only. */
  readonly listable: boolean
}

/** The parameters of an input schema: its own, and those of what it refers to or is made of. */
export function shapeOf (root: unknown): InputShape {
  const properties = new Map<string, unknown>()
  const required = new Set<string>()
  const seen = new Set<unknown>()
  let others: unknown
  let listable = true
  const walk = (schema: unknown, surely: boolean): void => {
    if (!isObject(schema) || seen.has(schema)) return
    seen.add(schema)
    for (const [name, property] of Object.entries(isObject(schema.properties) ? schema.properties : {})) {
      if (property === false || properties.has(name)) continue
      properties.set(name, property)
      if (!surely) listable = false
    }
    if (surely) for (const name of schemasIn(schema.required)) if (typeof name === 'string') required.add(name)
    if (isObject(schema.patternProperties) && Object.keys(schema.patternProperties).length > 0) listable = false
    if (isObject(schema.additionalProperties)) { others ??= schema.additionalProperties; if (Object.keys(schema.additionalProperties).length > 0) listable = false }
    if (typeof schema.$ref === 'string') walk(lookUp(schema.$ref, root), surely)
    for (const each of schemasIn(schema.allOf)) walk(each, surely)
    for (const each of [...schemasIn(schema.anyOf), ...schemasIn(schema.oneOf), schema.then, schema.else]) walk(each, false)
  }
  walk(root, true)
  for (const name of required) if (!properties.has(name)) listable = false
  return { properties, required, others, listable }
}
