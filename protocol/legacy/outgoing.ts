import type { Exchange } from '../exchange.ts'
import { isObject, memberOf, withMembers } from '../json.ts'
import { metaKeys } from '../modern/envelope.ts'
import { outgoingParams } from '../progress.ts'

/** Members of a modern client's request for rounds of questions, which servers of this era do not know. */
const ofRounds = { inputResponses: undefined, requestState: undefined }
const ofThatHop = { [metaKeys.logLevel]: undefined }

/**
 * The params of a client's request to a server of this era: without what a modern client says to its own hop. The log
 * level that it wants is that of its exchange, and the rounds of its questions are led here.
 * @param changes members of `params` that get another value, as JSON text
 * @param token the progress token of this hop
 */
export function legacyParams (exchange: Exchange, changes: Readonly<Record<string, string>>, token: number): string {
  const { params, canSuspend } = exchange
  const { _meta: meta } = params
  const hasLevel = isObject(meta) && meta[metaKeys.logLevel] !== undefined
  const hasRounds = canSuspend && (params.inputResponses !== undefined || params.requestState !== undefined)
  const text = outgoingParams(exchange, changes, token)
  if (!hasLevel && !hasRounds) return text
  const own = hasLevel ? withMembers(memberOf(text, '_meta') ?? '{}', ofThatHop) : undefined
  return withMembers(
    text, { ...(hasRounds && ofRounds), ...(own !== undefined && { _meta: own === '{}' ? undefined : own }) }
  )
}
