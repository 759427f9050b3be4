import { requireClientCapability, type ServerRequest, type ClientCapabilities } from '../../../protocol/capabilities.ts'
import { rpcCode, RpcError } from '../../../protocol/errors.ts'
import type { Question } from '../../../protocol/exchange.ts'
import { isObject, memberOf, withMembers } from '../../../protocol/json.ts'
import { mayRequireInput } from '../../../protocol/modern/envelope.ts'
import {
  hasInputRequestsOrState, inputRequestMethods, invalidInputRequestsMessage, missingInputRequestsMessage,
  requiredCapabilitiesFor
} from '../../../protocol/modern/input-rounds.ts'
import { withoutProgressToken } from '../../../protocol/progress.ts'
import { missingCapabilitiesError } from './errors.ts'
import { isInputRequiredResult } from './result.ts'

/**
 * Whether a result requests input from the client.
 * @param method the method of the request
 * @throws RpcError if the result requests input, but the client's capabilities or the method do not allow that
 */
export function resultRequiresInput (capabilities: ClientCapabilities, method: string, text: string): boolean {
  if (!isInputRequiredResult(text)) return false
  if (!mayRequireInput(method)) throw refusedError(`it requests input during ${method}`)
  checkInputRequests(capabilities, text)
  return true
}

/**
 * Checks the questions of a modern server, which are forwarded unchanged (MCP 2026-07-28, "Server Requirements").
 * @param text the text of an `input_required` result
 * @throws RpcError if a question is missing or invalid; -32021 if the client did not declare the capability for it
 */
export function checkInputRequests (capabilities: ClientCapabilities, text: string): void {
  if (!hasInputRequestsOrState(text)) throw refusedError(missingInputRequestsMessage)
  const requests: unknown = JSON.parse(memberOf(text, 'inputRequests') ?? '{}')
  for (const each of isObject(requests) ? Object.values(requests) : [undefined]) {
    if (!isObject(each) || typeof each.method !== 'string') throw refusedError(invalidInputRequestsMessage)
    const params = isObject(each.params) ? each.params : {}
    try {
      requireSupportedQuestion(capabilities, { method: each.method, params })
    } catch (error) {
      if (!(error instanceof RpcError)) throw error
      const message = `The server sent a request that is not allowed: ${error.message}`
      const requiredCapabilities = requiredCapabilitiesFor(each.method, params)
      if (requiredCapabilities === undefined) throw new RpcError(rpcCode.internal, message, 'upstream')
      throw missingCapabilitiesError(message, requiredCapabilities)
    }
  }
}

const refusedError = (why: string): RpcError =>
  new RpcError(rpcCode.internal, `The server's request cannot be answered: ${why}`, 'upstream')

/**
 * Checks that the client has declared the capability for a question.
 * @throws RpcError, with which the server is answered
 */
export function requireSupportedQuestion (capabilities: ClientCapabilities, question: ServerRequest): void {
  if (!inputRequestMethods.has(question.method)) {
    throw new RpcError(rpcCode.methodNotFound, `The client does not support ${question.method}`)
  }
  requireClientCapability(capabilities, question)
}

/** Returns the JSON text of a question for `inputRequests`, without its progress token and elicitation id. */
export function toInputRequest ({ method, params, paramsText }: Question): string {
  const text = withoutProgressToken(paramsText)
  const own = params.elicitationId === undefined ? text : withMembers(text, { elicitationId: undefined })
  return `{"method":${JSON.stringify(method)}${own === '{}' ? '' : `,"params":${own}`}}`
}
