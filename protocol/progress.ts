import { isObject, memberOf, withMembers } from './json.ts'

// A progress token is valid on one hop (MCP, "Progress"): the gateway replaces the sender's token by its own, and
// restores it in progress notifications. All texts are JSON; the other members of `_meta` keep their bytes.

/**
 * Returns the sender's token, as JSON text; undefined if it is absent or null, which means that no progress is wanted.
 */
export function progressTokenOf (params: Readonly<Record<string, unknown>>, paramsText: string): string | undefined {
  const meta = params._meta
  if (!isObject(meta) || (meta.progressToken ?? undefined) === undefined) return undefined
  return memberOf(memberOf(paramsText, '_meta') ?? '{}', 'progressToken')
}

/** Replaces the token in `_meta`, or removes it if `token` is undefined. @param metaText undefined if absent */
const withToken = (metaText: string | undefined, token: string | undefined): string =>
  withMembers(metaText ?? '{}', { progressToken: token })

/**
 * Creates the params of a request for the next hop.
 * @param changes members of `params` to replace, as JSON text
 * @param token replaces the sender's token, if the sender wants progress
 */
export function outgoingParams (
  { params, paramsText }: { readonly params: Readonly<Record<string, unknown>>, readonly paramsText: string },
  changes: Readonly<Record<string, string>>,
  token: number
): string {
  const meta = params._meta
  if (isObject(meta) && meta.progressToken !== undefined) {
    const own = meta.progressToken === null ? undefined : String(token)
    return withMembers(
      paramsText, { ...changes, _meta: withToken(changes._meta ?? memberOf(paramsText, '_meta'), own) }
    )
  }
  return Object.keys(changes).length === 0 ? paramsText : withMembers(paramsText, changes)
}

/** Removes the progress token from a request's params. */
export function withoutProgressToken (paramsText: string): string {
  const token = memberOf(memberOf(paramsText, '_meta') ?? '{}', 'progressToken')
  return token === undefined
    ? paramsText
    : withMembers(paramsText, { _meta: withToken(memberOf(paramsText, '_meta'), undefined) })
}

/** Sets the receiver's token in the params of `notifications/progress`. @param token the token, as JSON text */
export const restoreProgressToken = (paramsText: string, token: string): string =>
  withMembers(paramsText, { progressToken: token })
