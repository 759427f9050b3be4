import { code, type RpcError } from '../../../protocol/errors.ts'
import { isObject, memberOf, smallMemberOf } from '../../../protocol/json.ts'
import type { ModernExchange } from './exchange.ts'
import { resultHead } from './result.ts'

/**
 * The error -32042 of former revisions, with which a server wants addresses to be opened before the request is sent again, as a result of
 * this era.
 * @param seal seals the state of a request that is to be run once more
 * @returns the text of the result; undefined where the client cannot open addresses, or the error names none
 */
export function elicitationOf (error: RpcError, exchange: ModernExchange, seal: () => string): string | undefined {
  const { elicitation } = exchange.client.capabilities
  if (error.code !== code.urlElicitationRequired || !exchange.canSuspend) return undefined
  if (!isObject(elicitation) || elicitation.url === undefined) return undefined
  const named = smallMemberOf(memberOf(error.toText(), 'data') ?? '{}', 'elicitations')
  if (!Array.isArray(named)) return undefined
  const requests = named.flatMap((each: unknown, at) => {
    if (!isObject(each) || typeof each.url !== 'string') return []
    const params = { mode: 'url', message: typeof each.message === 'string' ? each.message : error.message, url: each.url }
    return [[`elicitation-${at + 1}`, { method: 'elicitation/create', params }]]
  })
  if (requests.length === 0) return undefined
  const inputRequests = JSON.stringify(Object.fromEntries(requests))
  const head = resultHead('input_required', exchange.serverInfo)
  return `${head},"inputRequests":${inputRequests},"requestState":${JSON.stringify(seal())}}`
}

/** Whether a person agreed to everything that was asked. @param answersText `inputResponses` */
export function isAccepted (answersText: string): boolean {
  const answers = Object.values(JSON.parse(answersText) as Record<string, unknown>)
  return answers.length > 0 && answers.every((each) => isObject(each) && each.action === 'accept')
}
