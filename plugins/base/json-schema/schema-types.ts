// Finds out which types and values a schema may allow, without full validation.
import { isObject } from '../../../protocol/json.ts'
import { resolveRef } from './json-pointer.ts'

/** A type of JSON Schema. `number` includes integers. */
export type SchemaType = 'null' | 'boolean' | 'integer' | 'number' | 'string' | 'array' | 'object'
const schemaTypes: readonly SchemaType[] = ['null', 'boolean', 'integer', 'number', 'string', 'array', 'object']

/** A set of types as a bit mask. */
type TypeSet = number
const noTypes: TypeSet = 0
const allTypes: TypeSet = (1 << schemaTypes.length) - 1
const bitOf = (type: SchemaType): TypeSet => 1 << schemaTypes.indexOf(type)
const arrayOrObject: TypeSet = bitOf('array') | bitOf('object')

/** The types of each set, in an array indexed by the bit mask. */
const typesBySet: ReadonlyArray<readonly SchemaType[]> = Array.from({ length: allTypes + 1 }, (_, set) =>
  schemaTypes.filter((type) => set & bitOf(type))
)

/** The types that each name in the keyword `type` allows. `number` includes integers. */
const setByName: ReadonlyMap<unknown, TypeSet> = new Map(
  schemaTypes.map((type) => [type, type === 'number' ? bitOf('integer') | bitOf('number') : bitOf(type)])
)

/** Returns the types that the keyword `type` allows. @param type its value: a name, or an array of names */
const setOfKeyword = (type: unknown): TypeSet => {
  if (Array.isArray(type)) return type.reduce((set: TypeSet, name) => set | (setByName.get(name) ?? noTypes), noTypes)
  return setByName.get(type) ?? noTypes
}

/** The keywords other than `type` that restrict the type of a value. */
const restrictingKeywords = ['enum', 'const', '$ref', 'allOf', 'anyOf', 'oneOf']
const hasRestriction = (schema: Record<string, unknown>): boolean =>
  restrictingKeywords.some((keyword) => keyword in schema)

/** Returns the types that a schema allows. @param root the schema in which references are resolved */
export const typesOf = (schema: unknown, root: unknown): readonly SchemaType[] =>
  typesBySet[allowedTypes(schema, root)] ?? []

/** Whether a schema allows neither arrays nor objects. @param root the schema in which references are resolved */
export const isScalarSchema = (schema: unknown, root: unknown): boolean =>
  (allowedTypes(schema, root) & arrayOrObject) === noTypes

function allowedTypes (schema: unknown, root: unknown, visited?: Map<unknown, TypeSet>): TypeSet {
  if (schema === false) return noTypes
  if (!isObject(schema)) return allTypes
  const types = schema.type === undefined ? allTypes : setOfKeyword(schema.type)
  return hasRestriction(schema) ? restrictTypes(types, schema, root, visited ?? new Map()) : types
}

/**
 * Removes the types that the other keywords of a schema exclude.
 * @param visited the result for each schema; while a recursive schema is visited, it counts as allowing all types
 */
function restrictTypes (
  types: TypeSet, schema: Record<string, unknown>, root: unknown, visited: Map<unknown, TypeSet>
): TypeSet {
  const known = visited.get(schema)
  if (known !== undefined) return known
  visited.set(schema, allTypes)
  const union = (schemas: unknown): TypeSet =>
    Array.isArray(schemas)
      ? schemas.reduce((set: TypeSet, each) => set | allowedTypes(each, root, visited), noTypes)
      : allTypes
  if (Array.isArray(schema.enum)) {
    types &= schema.enum.reduce((set: TypeSet, value) => set | bitOf(typeOf(value)), noTypes)
  }
  if (Object.hasOwn(schema, 'const')) types &= bitOf(typeOf(schema.const))
  if (typeof schema.$ref === 'string') types &= allowedTypes(resolveRef(schema.$ref, root), root, visited)
  if (Array.isArray(schema.allOf)) for (const each of schema.allOf) types &= allowedTypes(each, root, visited)
  types &= union(schema.anyOf) & union(schema.oneOf)
  visited.set(schema, types)
  return types
}

/**
 * Whether a schema accepts a value as far as `type`, `enum` and `const` tell, including those in referenced and
 * combined schemas. Any two objects or arrays count as equal.
 * @param root the schema in which references are resolved
 */
export function mayAcceptValue (
  schema: unknown, value: unknown, root: unknown, visited?: Map<unknown, boolean>
): boolean {
  if (!isObject(schema)) return schema !== false
  const hasType = schema.type === undefined || (setOfKeyword(schema.type) & bitOf(typeOf(value))) !== noTypes
  if (!hasType || !hasRestriction(schema)) return hasType
  const results = visited ?? new Map<unknown, boolean>()
  const known = results.get(schema)
  if (known !== undefined) return known
  // While a recursive schema is visited, it counts as accepting the value.
  results.set(schema, true)
  const result = fulfilsRestrictions(schema, value, root, results)
  results.set(schema, result)
  return result
}

function fulfilsRestrictions (
  schema: Record<string, unknown>, value: unknown, root: unknown, visited: Map<unknown, boolean>
): boolean {
  const isAcceptedBy = (each: unknown): boolean => mayAcceptValue(each, value, root, visited)
  const isEqual = (each: unknown): boolean => each === value || (isComposite(each) && isComposite(value))
  if (Array.isArray(schema.enum) && !schema.enum.some(isEqual)) return false
  if (Object.hasOwn(schema, 'const') && !isEqual(schema.const)) return false
  if (typeof schema.$ref === 'string' && !isAcceptedBy(resolveRef(schema.$ref, root))) return false
  if (Array.isArray(schema.allOf) && !schema.allOf.every(isAcceptedBy)) return false
  return [schema.anyOf, schema.oneOf].every((choices) => !Array.isArray(choices) || choices.some(isAcceptedBy))
}

const isComposite = (value: unknown): boolean => typeof value === 'object' && value !== null

function typeOf (value: unknown): SchemaType {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number'
  return typeof value === 'string' || typeof value === 'boolean' ? typeof value as 'string' | 'boolean' : 'object'
}
