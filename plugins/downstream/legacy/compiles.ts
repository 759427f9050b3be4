import { isObject } from '../../../protocol/json.ts'
import { resolvePointer } from '../../base/json-schema/index.ts'

const types = new Set<unknown>(['null', 'boolean', 'integer', 'number', 'string', 'array', 'object'])
/** The keywords whose values are schemas by name, lists of schemas, and schemas. */
const named = ['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas']
const listed = ['allOf', 'anyOf', 'oneOf', 'prefixItems']
const single = ['additionalProperties', 'additionalItems', 'not', 'if', 'then', 'else', 'contains', 'propertyNames']

/**
 * Whether a client that compiles a schema, and does not check it against its meta-schema before, can compile it: SDKs of this era do so
 * with the `outputSchema` of every tool that is listed, and refuse the list where one fails.
 * @param root the whole schema, for references
 */
export function compiles (schema: unknown, root: unknown = schema): boolean {
  if (typeof schema === 'boolean') return true
  if (!isObject(schema)) return false
  const { type, pattern, patternProperties, $ref, $id, items } = schema
  // A second schema of one id is refused.
  if ($id !== undefined) return false
  if (type !== undefined && ![type].flat().every((each) => types.has(each))) return false
  if (typeof pattern === 'string' && !isPattern(pattern)) return false
  if (isObject(patternProperties) && !Object.keys(patternProperties).every(isPattern)) return false
  if (typeof $ref === 'string' && $ref !== '#' && resolvePointer(root, $ref) === undefined) return false
  const subschemas = [
    ...named.flatMap((keyword) => isObject(schema[keyword]) ? Object.values(schema[keyword]) : []),
    ...listed.flatMap((keyword) => schema[keyword] ?? []),
    ...single.flatMap((keyword) => schema[keyword] === undefined ? [] : [schema[keyword]]),
    ...items === undefined ? [] : [items].flat()
  ]
  return subschemas.every((each) => compiles(each, root))
}

function isPattern (text: string): boolean {
  try {
    return RegExp(text, 'u') instanceof RegExp
  } catch {
    return false
  }
}
