import {
  requireClientCapability as checkDeclared, type AskedFor, type ClientCapabilities
} from '../../../protocol/capabilities.ts'
import { code, RpcError } from '../../../protocol/errors.ts'
import type { Question } from '../../../protocol/exchange.ts'
import { isObject, memberOf, withMembers } from '../../../protocol/json.ts'
import { maySuspend } from '../../../protocol/modern/envelope.ts'
import { asksNoRequest, questions, requiredFor, saysNothing, saysWhat } from '../../../protocol/modern/input-rounds.ts'
import { withoutProgressToken } from '../../../protocol/progress.ts'
import { missingCapabilities } from './errors.ts'
import { asksForInput } from './result.ts'

/**
 * Whether a result asks the client a question.
 * @throws RpcError for a question that the client or the method does not allow
 */
export function isAsked (capabilities: ClientCapabilities, method: string, text: string): boolean {
  if (!asksForInput(text)) return false
  if (!maySuspend(method)) throw refused(`it asks for input during ${method}`)
  checkAsked(capabilities, text)
  return true
}

/**
 * Checks the questions of a modern server, which are passed on unchanged (MCP 2026-07-28, "Server Requirements").
 * @param text the text of an `input_required` result
 * @throws RpcError for no question or an invalid one; -32021 if the client does not declare the capability for it
 */
export function checkAsked (capabilities: ClientCapabilities, text: string): void {
  if (!saysWhat(text)) throw refused(saysNothing)
  const asked: unknown = JSON.parse(memberOf(text, 'inputRequests') ?? '{}')
  for (const each of isObject(asked) ? Object.values(asked) : [undefined]) {
    if (!isObject(each) || typeof each.method !== 'string') throw refused(asksNoRequest)
    const params = isObject(each.params) ? each.params : {}
    try {
      requireDeclared(capabilities, { method: each.method, params })
    } catch (error) {
      if (!(error instanceof RpcError)) throw error
      const message = `The server cannot be served: it asks what it may not: ${error.message}`
      const requiredCapabilities = requiredFor(each.method, params)
      if (requiredCapabilities === undefined) throw new RpcError(code.internal, message, 'upstream')
      throw missingCapabilities(message, requiredCapabilities)
    }
  }
}

const refused = (why: string): RpcError =>
  new RpcError(code.internal, `The server cannot be served: ${why}`, 'upstream')

/** @throws RpcError to answer the server with, if the client does not declare the capability for this question */
export function requireDeclared (capabilities: ClientCapabilities, asked: AskedFor): void {
  if (!questions.has(asked.method)) {
    throw new RpcError(code.methodNotFound, 'The client does not support ' +
    `${asked.method}`)
  }
  checkDeclared(capabilities, asked)
}

/** The JSON text of a question in `inputRequests`, without its progress token and elicitation id. */
export function inputRequest ({ method, params, paramsText }: Question): string {
  const text = withoutProgressToken(paramsText)
  const own = params.elicitationId === undefined ? text : withMembers(text, { elicitationId: undefined })
  return `{"method":${JSON.stringify(method)}${own === '{}' ? '' : `,"params":${own}`}}`
}
