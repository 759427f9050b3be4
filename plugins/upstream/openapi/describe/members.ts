import { isObject } from '../../../../protocol/json.ts'
import type { References } from './refs.ts'

/** The properties of an object schema, unconverted. */
export interface Members {
  properties: Map<string, unknown>
  required: Set<string>
  additionalProperties: unknown
}

/** Max nesting of `allOf`. */
const maxDepth = 16

/** Keywords by which a list of properties does not describe the whole object. */
const conditionalKeywords = [
  'oneOf',
  'anyOf',
  'not',
  'if',
  'patternProperties',
  'propertyNames',
  'unevaluatedProperties',
  '$dynamicRef'
]

/**
 * The properties of an object schema, with those of its `allOf`, and without those that are `readOnly`.
 * @returns undefined for a schema that is not an object's, or that a list of properties does not describe in whole
 */
export function schemaMembers (schema: unknown, refs: References, depth = 0): Members | undefined {
  const object = refs.resolveObject(schema)
  if (!object || depth > maxDepth) return undefined
  const { type, properties, required, additionalProperties, allOf } = object
  if (type !== undefined && type !== 'object') return undefined
  if (conditionalKeywords.some((keyword) => object[keyword] !== undefined)) return undefined
  const members: Members = { properties: new Map(), required: new Set(), additionalProperties }
  for (const part of Array.isArray(allOf) ? allOf : []) {
    const inner = schemaMembers(part, refs, depth + 1)
    if (!inner) return undefined
    for (const [name, property] of inner.properties) addProperty(members, name, property)
    for (const name of inner.required) members.required.add(name)
    members.additionalProperties ??= inner.additionalProperties
  }
  for (const [name, property] of isObject(properties) ? Object.entries(properties) : []) {
    const isSchema = isObject(property) || typeof property === 'boolean'
    if (isSchema && refs.resolveObject(property)?.readOnly !== true) addProperty(members, name, property)
  }
  for (const name of Array.isArray(required) ? required : []) if (typeof name === 'string') members.required.add(name)
  return members
}

/** Adds a property. One that is there already must fulfil both schemas. */
function addProperty ({ properties }: Members, name: string, property: unknown): void {
  const existing = properties.get(name)
  properties.set(name, existing === undefined ? property : { allOf: [existing, property] })
}
