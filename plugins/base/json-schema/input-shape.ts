import { isObject } from '../../../protocol/json.ts'
import { resolveRef } from './json-pointer.ts'

/** The keywords whose subschemas apply to the same object, and may declare further parameters. */
const combiningKeywords = ['$ref', 'allOf', 'anyOf', 'oneOf', 'then', 'else']

const arrayOf = (value: unknown): unknown[] => Array.isArray(value) ? value : []

/** The parameters of a tool's input schema, including those declared in schemas that it references or combines. */
interface InputShape {
  /** The schema of each parameter by name, in order of declaration. Omits parameters whose schema is `false`. */
  readonly properties: ReadonlyMap<string, unknown>
  readonly required: ReadonlySet<string>
  /** The schema of undeclared parameters (`additionalProperties`); undefined if none is stated. */
  readonly additional: unknown
  /**
   * Whether `properties` lists every parameter. False if some are declared only by a pattern, by the schema of
   * undeclared parameters, in an alternative, or in `required`.
   */
  readonly isComplete: boolean
}

/** Reads the parameters of an input schema. */
export function inputShapeOf (root: unknown): InputShape {
  const properties = new Map<string, unknown>()
  const required = new Set<string>()
  const visited = new Set<unknown>()
  let additional: unknown
  let isComplete = true
  /** @param isUnconditional whether the schema applies to all arguments; false within an alternative */
  const visit = (schema: unknown, isUnconditional: boolean): void => {
    if (!isObject(schema) || visited.has(schema)) return
    visited.add(schema)
    if (isObject(schema.properties)) {
      for (const name of Object.keys(schema.properties)) addProperty(name, schema.properties[name], isUnconditional)
    }
    if (isUnconditional) for (const name of arrayOf(schema.required)) if (typeof name === 'string') required.add(name)
    if (isObject(schema.patternProperties) && Object.keys(schema.patternProperties).length > 0) isComplete = false
    if (isObject(schema.additionalProperties)) {
      additional ??= schema.additionalProperties
      if (Object.keys(schema.additionalProperties).length > 0) isComplete = false
    }
    if (combiningKeywords.some((keyword) => schema[keyword] !== undefined)) visitCombined(schema, isUnconditional)
  }
  const addProperty = (name: string, property: unknown, always: boolean): void => {
    if (property === false || properties.has(name)) return
    properties.set(name, property)
    if (!always) isComplete = false
  }
  const visitCombined = (schema: Record<string, unknown>, always: boolean): void => {
    if (typeof schema.$ref === 'string') visit(resolveRef(schema.$ref, root), always)
    for (const each of arrayOf(schema.allOf)) visit(each, always)
    for (const each of [...arrayOf(schema.anyOf), ...arrayOf(schema.oneOf), schema.then, schema.else]) {
      visit(each, false)
    }
  }
  visit(root, true)
  for (const name of required) if (!properties.has(name)) isComplete = false
  return { properties, required, additional, isComplete }
}
