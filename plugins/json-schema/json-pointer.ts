// JSON Pointer (RFC 6901). A "~" that begins no escape stands for itself: published schemas and descriptions have such names.

/**
 * The reference tokens of a pointer, unescaped; none for the pointer to the whole document, which is empty.
 * @param pointer as JSON strings have it, for example `/paths/~1users/get`
 * @throws SyntaxError for a text that is not empty and does not begin with a slash
 */
export function parsePointer (pointer: string): string[] {
  if (pointer === '') return []
  if (!pointer.startsWith('/')) throw new SyntaxError(`${JSON.stringify(pointer)} is not a JSON Pointer: it must begin with "/"`)
  return pointer.slice(1).split('/').map(unescapeToken)
}

/**
 * The reference tokens of a pointer in a URI fragment (RFC 6901 §6), which is percent-encoded beside.
 * A token whose percent-encoding is not valid UTF-8 is taken literally.
 * @param fragment with its `#`, for example `#/components/schemas/User`
 * @throws SyntaxError for a text that does not begin with `#`, or whose rest is not a pointer
 */
export function parseFragment (fragment: string): string[] {
  if (!fragment.startsWith('#')) throw new SyntaxError(`${JSON.stringify(fragment)} is not a URI fragment: it must begin with "#"`)
  const pointer = fragment.slice(1)
  if (pointer === '') return []
  if (!pointer.startsWith('/')) throw new SyntaxError(`${JSON.stringify(fragment)} is not a JSON Pointer: it must begin with "#/"`)
  return pointer.slice(1).split('/').map((token) => unescapeToken(decoded(token)))
}

/** A member's name or an index as a reference token: `~` becomes `~0`, `/` becomes `~1`. */
export const escapeToken = (name: string | number): string => String(name).replaceAll('~', '~0').replaceAll('/', '~1')

/** The pointer of some reference tokens: the inverse of `parsePointer`. */
export const toPointer = (tokens: ReadonlyArray<string | number>): string => tokens.map((token) => `/${escapeToken(token)}`).join('')

/**
 * The value that a pointer leads to within a JSON value; undefined when there is none. Only own members count, and of arrays only
 * indices without leading zeros.
 * @param pointer a pointer, or the tokens of one
 * @throws SyntaxError as `parsePointer`
 */
export function resolvePointer (root: unknown, pointer: string | readonly string[]): unknown {
  let value = root
  for (const token of typeof pointer === 'string' ? parsePointer(pointer) : pointer) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, token)) return undefined
    // `length` is an own member of arrays, too.
    if (Array.isArray(value) && !/^(0|[1-9]\d*)$/.test(token)) return undefined
    value = (value as Record<string, unknown>)[token]
  }
  return value
}

/** In this order: `~01` stands for `~1` (RFC 6901 §4). */
const unescapeToken = (token: string): string => token.replaceAll('~1', '/').replaceAll('~0', '~')

function decoded (token: string): string {
  try {
    return decodeURIComponent(token)
  } catch {
    return token
  }
}
