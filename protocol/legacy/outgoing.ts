import type { Exchange } from '../exchange.ts'
import { isObject, memberOf, withMembers } from '../json.ts'
import { metaKeys } from '../modern/envelope.ts'
import { outgoingParams } from '../progress.ts'

/** The members of multi round-trip requests, which legacy servers do not know. */
const roundMembers = { inputResponses: undefined, requestState: undefined }
/** The member of `_meta` that is meant for the gateway itself. */
const hopMembers = { [metaKeys.logLevel]: undefined }

/**
 * Creates the params of a client's request for a legacy server. Omits the members that a modern client sends to the
 * gateway itself: its log level, and its answers to questions.
 * @param changes members of `params` to replace, as JSON text
 * @param token the progress token to send, if the client wants progress
 */
export function legacyParams (exchange: Exchange, changes: Readonly<Record<string, string>>, token: number): string {
  const { params, canSuspend } = exchange
  const { _meta: meta } = params
  const hasLevel = isObject(meta) && meta[metaKeys.logLevel] !== undefined
  const hasRounds = canSuspend && (params.inputResponses !== undefined || params.requestState !== undefined)
  const text = outgoingParams(exchange, changes, token)
  if (!hasLevel && !hasRounds) return text
  const own = hasLevel ? withMembers(memberOf(text, '_meta') ?? '{}', hopMembers) : undefined
  return withMembers(
    text, { ...(hasRounds && roundMembers), ...(own !== undefined && { _meta: own === '{}' ? undefined : own }) }
  )
}
