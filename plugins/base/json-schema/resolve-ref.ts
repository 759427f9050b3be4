import { isObject } from '../../../protocol/json.ts'
import { resolvePointer } from './json-pointer.ts'

/**
 * The subschema that a local `$ref` refers to: by a JSON Pointer, by an `$anchor` among the root's definitions, or by the root's `$id`.
 * @param root the schema that the reference stands in
 * @returns undefined where the reference leads out of the schema, or to nothing
 */
export function resolveRef (ref: string, root: unknown): unknown {
  if (!isObject(root)) return undefined
  const local = typeof root.$id === 'string' && ref.startsWith(`${root.$id}#`) ? ref.slice(root.$id.length) : ref
  if (local === '#' || (local !== '' && local === root.$id)) return root
  if (local.startsWith('#/')) return resolvePointer(root, local)
  if (!local.startsWith('#')) return undefined
  const definitions = [root.$defs, root.definitions].flatMap((each) => isObject(each) ? Object.values(each) : [])
  return definitions.find((each) => isObject(each) && each.$anchor === local.slice(1))
}
