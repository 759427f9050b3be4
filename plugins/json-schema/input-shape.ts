import { isObject } from '../../protocol/json.ts'

/** A type of JSON Schema. `number` is every number, whole ones too. */
export type SchemaType = 'null' | 'boolean' | 'integer' | 'number' | 'string' | 'array' | 'object'
const everyType: readonly SchemaType[] = ['null', 'boolean', 'integer', 'number', 'string', 'array', 'object']

const schemasIn = (value: unknown): unknown[] => Array.isArray(value) ? value : []

/** What a local `$ref` leads to; undefined: it leads out of the schema, or nowhere. */
export function resolveRef (ref: string, root: unknown): unknown {
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

/** A set of types: the bit of each one, added up. */
type Types = number
const bitOf = (type: SchemaType): Types => 1 << everyType.indexOf(type)
const all: Types = (1 << everyType.length) - 1
const single: ReadonlyMap<unknown, Types> = new Map(
  everyType.map((type) => [type, type === 'number' ? bitOf('integer') | bitOf('number') : bitOf(type)])
)
const typesNamed = (type: unknown): Types =>
  single.get(type) ?? (Array.isArray(type) ? type.reduce((types: Types, each) => types | (single.get(each) ?? 0), 0) : 0)
/** The types in each set. */
const typesIn: ReadonlyArray<readonly SchemaType[]> = Array.from({ length: all + 1 }, (_, types) =>
  everyType.filter((type) => types & bitOf(type))
)
/** What else than `type` says of which types a value may be. */
const narrowing = ['enum', 'const', '$ref', 'allOf', 'anyOf', 'oneOf']

/** The types that a value may have by a schema, as far as can be told; all of them where it says nothing. */
export const typesOf = (schema: unknown, root: unknown): readonly SchemaType[] => typesIn[possible(schema, root)] ?? []

const composite: Types = bitOf('array') | bitOf('object')
/** True for a schema that takes neither lists nor objects. */
export const isScalar = (schema: unknown, root: unknown): boolean => (possible(schema, root) & composite) === 0

function possible (schema: unknown, root: unknown, seen?: Map<unknown, Types>): Types {
  if (schema === false) return 0
  if (!isObject(schema)) return all
  const types = schema.type === undefined ? all : typesNamed(schema.type)
  return narrowing.some((keyword) => keyword in schema) ? narrowed(types, schema, root, seen ?? new Map()) : types
}

function narrowed (types: Types, schema: Record<string, unknown>, root: unknown, seen: Map<unknown, Types>): Types {
  const known = seen.get(schema)
  if (known !== undefined) return known
  seen.set(schema, all)
  const anyOf = (choices: unknown): Types =>
    Array.isArray(choices) ? choices.reduce((types: Types, each) => types | possible(each, root, seen), 0) : all
  if (Array.isArray(schema.enum)) types &= schema.enum.reduce((types: Types, each) => types | bitOf(typeOf(each)), 0)
  if (Object.hasOwn(schema, 'const')) types &= bitOf(typeOf(schema.const))
  if (typeof schema.$ref === 'string') types &= possible(resolveRef(schema.$ref, root), root, seen)
  if (Array.isArray(schema.allOf)) for (const each of schema.allOf) types &= possible(each, root, seen)
  types &= anyOf(schema.anyOf) & anyOf(schema.oneOf)
  seen.set(schema, types)
  return types
}

/** Whether a schema takes a value, as far as the types and the values that it names tell. */
export function accepts (schema: unknown, value: unknown, root: unknown, seen?: Map<unknown, boolean>): boolean {
  if (!isObject(schema)) return schema !== false
  const isTyped = schema.type === undefined || (typesNamed(schema.type) & bitOf(typeOf(value))) !== 0
  if (!isTyped || !narrowing.some((keyword) => keyword in schema)) return isTyped
  const known = (seen ??= new Map()).get(schema)
  if (known !== undefined) return known
  seen.set(schema, true)
  const isTaken = (each: unknown): boolean => accepts(each, value, root, seen)
  const isOne = (each: unknown): boolean =>
    each === value || (typeof each === 'object' && typeof value === 'object' && each !== null && value !== null)
  const result = (!Array.isArray(schema.enum) || schema.enum.some(isOne)) &&
    (!Object.hasOwn(schema, 'const') || isOne(schema.const)) &&
    (typeof schema.$ref !== 'string' || isTaken(resolveRef(schema.$ref, root))) &&
    schemasIn(schema.allOf).every(isTaken) &&
    [schema.anyOf, schema.oneOf].every((choices) => !Array.isArray(choices) || choices.some(isTaken))
  seen.set(schema, result)
  return result
}

function typeOf (value: unknown): SchemaType {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number'
  return typeof value === 'string' || typeof value === 'boolean' ? typeof value as 'string' | 'boolean' : 'object'
}

/** Keywords that make a schema of others. */
const combining = ['$ref', 'allOf', 'anyOf', 'oneOf', 'then', 'else']

/** What a tool's input schema says of its parameters, wherever in it that stands. */
export interface InputShape {
  /** By name; in the order they are first named. Those that a value may not have are not there. */
  readonly properties: ReadonlyMap<string, unknown>
  readonly required: ReadonlySet<string>
  /** Of parameters that have no name here; undefined: not said. */
  readonly additional: unknown
  /** True when a list of parameters says it all: none has its name by a pattern, or in one of several cases only. */
  readonly isComplete: boolean
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
    if (isObject(schema.properties)) for (const name of Object.keys(schema.properties)) take(name, schema.properties[name], surely)
    if (surely && Array.isArray(schema.required)) for (const name of schema.required) if (typeof name === 'string') required.add(name)
    if (isObject(schema.patternProperties) && Object.keys(schema.patternProperties).length > 0) listable = false
    if (isObject(schema.additionalProperties)) {
      others ??= schema.additionalProperties
      if (Object.keys(schema.additionalProperties).length > 0) listable = false
    }
    if (combining.some((keyword) => schema[keyword] !== undefined)) parts(schema, surely)
  }
  const take = (name: string, property: unknown, surely: boolean): void => {
    if (property === false || properties.has(name)) return
    properties.set(name, property)
    if (!surely) listable = false
  }
  const parts = (schema: Record<string, unknown>, surely: boolean): void => {
    if (typeof schema.$ref === 'string') walk(resolveRef(schema.$ref, root), surely)
    for (const each of schemasIn(schema.allOf)) walk(each, surely)
    for (const each of [...schemasIn(schema.anyOf), ...schemasIn(schema.oneOf), schema.then, schema.else]) walk(each, false)
  }
  walk(root, true)
  for (const name of required) if (!properties.has(name)) listable = false
  return { properties, required, additional: others, isComplete: listable }
}
