// JSON Pointer (RFC 6901).
import { isObject } from '../../../protocol/json.ts'
import { percentDecode } from '../../../protocol/text.ts'

/**
 * Splits a JSON Pointer into its reference tokens, unescaped. A pointer that starts with `#` is a URI fragment: its
 * tokens are percent-decoded first (RFC 6901, section 6), unless their encoding is not valid.
 */
export const parsePointer = (pointer: string): string[] => {
  const isFragment = pointer.startsWith('#')
  const tokens = pointer.split('/').slice(1)
  return tokens.map((token) => unescapeToken(isFragment ? percentDecode(token) ?? token : token))
}

const unescapeToken = (token: string): string => token.replaceAll('~1', '/').replaceAll('~0', '~')

/** Returns the value that a JSON Pointer refers to; undefined if there is none. Inherited properties do not count. */
export function resolvePointer (root: unknown, pointer: string): unknown {
  if (!/^#?(\/|$)/.test(pointer)) return undefined
  let value = root
  for (const token of parsePointer(pointer)) {
    const isContainer = Array.isArray(value) ? /^\d+$/.test(token) : isObject(value)
    if (!isContainer || !Object.hasOwn(value as object, token)) return undefined
    value = (value as Record<string, unknown>)[token]
  }
  return value
}

/**
 * Returns the subschema that a local `$ref` refers to: by a JSON Pointer, by an `$anchor` in one of the root's
 * definitions, or by the root's `$id`.
 * @param root the schema that contains the reference
 * @returns undefined if the reference leads out of the schema, or nowhere
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
