import { memberOf } from '../json.ts'
import type { Shape } from './shape.ts'
import { anyValue, object, list, anyMembers, withFallback } from './parts.ts'

/**
 * Keywords without subschemas whose values must not be null. `default`, `const` and `example` are left out, since they
 * may have any value.
 */
const plainKeywords = anyMembers(
  '$id', '$schema', '$ref', '$anchor', '$dynamicRef', '$dynamicAnchor', '$recursiveRef', '$recursiveAnchor',
  '$vocabulary', '$comment',
  'id', 'type', 'enum', 'enumNames', 'title', 'description', 'examples', 'deprecated', 'readOnly', 'writeOnly',
  'format', 'pattern',
  'multipleOf', 'maximum', 'exclusiveMaximum', 'minimum', 'exclusiveMinimum', 'maxLength', 'minLength', 'maxItems',
  'minItems',
  'uniqueItems', 'x-mcp-header', 'maxContains', 'minContains', 'maxProperties', 'minProperties', 'contentEncoding',
  'contentMediaType'
)

/** Creates the shape of a JSON Schema. @param hasTuples whether `items` may be a list of schemas, as before 2020-12 */
function schemaShape (hasTuples: boolean): Shape {
  const members: Record<string, Shape> = { ...plainKeywords }
  const schema: Shape = { isObject: true, members }
  // A null schema is replaced by a schema without constraints, since the property still exists.
  const any = withFallback(schema, '{}')
  const map: Shape = { isObject: true, each: any }
  for (const key of ['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas']) members[key] = map
  for (const key of ['allOf', 'anyOf', 'oneOf']) members[key] = list(schema)
  for (const key of [
    'additionalProperties', 'unevaluatedProperties', 'propertyNames', 'contains', 'additionalItems', 'unevaluatedItems',
    'not', 'if', 'then', 'else', 'contentSchema'
  ]) members[key] = schema
  members.prefixItems = list(any)
  members.items = hasTuples ? { members, element: any } : schema
  members.required = list(anyValue)
  members.dependentRequired = { isObject: true, each: list(anyValue) }
  members.dependencies = { isObject: true, each: { members } }
  return schema
}

const schemas = { today: schemaShape(false), withTuples: schemaShape(true) }
const olderDraft = /draft-0[3-7]|2019-09/
/** The shape of a JSON Schema, according to the draft that its `$schema` states. */
export const jsonSchemaShape: Shape = {
  isObject: true,
  select: (text) => olderDraft.test(memberOf(text, '$schema') ?? '') ? schemas.withTuples : schemas.today
}

/** The shape of a field of an elicitation form. MCP does not allow `null` as the field's default. */
const field = object({ ...schemas.today.members, default: anyValue }, { fallback: '{}' })
/** The shape of an elicitation form's schema. */
export const elicitationFormShape = object({ ...schemas.today.members, properties: { isObject: true, each: field } })
