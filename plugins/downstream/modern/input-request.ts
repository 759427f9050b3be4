import { requireClientCapability as checkDeclared, type AskedFor, type ClientCapabilities } from '../../../protocol/capabilities.ts'
import { code, RpcError } from '../../../protocol/errors.ts'
import type { Question } from '../../../protocol/exchange.ts'
import { isObject, memberOf, withMembers } from '../../../protocol/json.ts'
import { maySuspend } from '../../../protocol/modern/envelope.ts'
import { asksNoRequest, questions, requiredFor, saysNothing, saysWhat } from '../../../protocol/modern/input-rounds.ts'
import { withoutProgressToken } from '../../../protocol/progress.ts'
import { missingCapabilities } from './errors.ts'
import { asksForInput } from './result.ts'

/**
 * Whether a result asks the client something.
 * @throws RpcError where it is asked what it cannot be asked, or during a request that cannot ask
 */
export function isAsked (capabilities: ClientCapabilities, method: string, text: string): boolean {
  if (!asksForInput(text)) return false
  if (!maySuspend(method)) throw refused(`it asks for input during ${method}`)
  checkAsked(capabilities, text)
  return true
}

/**
 * Checks the questions of a server of this era, which are handed on as they are (MCP 2026-07-28, "Server Requirements").
 * @param text of an `input_required`
 * @throws RpcError when it asks nothing, or what is no question; -32021 when it asks what the client has not declared that it can be asked
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

const refused = (why: string): RpcError => new RpcError(code.internal, `The server cannot be served: ${why}`, 'upstream')

/** @throws RpcError to answer the server with, when the client has not declared that it can be asked this */
export function requireDeclared (capabilities: ClientCapabilities, asked: AskedFor): void {
  if (!questions.has(asked.method)) throw new RpcError(code.methodNotFound, `The client does not support ${asked.method}`)
  checkDeclared(capabilities, asked)
}

/** A question as an element of `inputRequests`, as JSON text: without what belongs to the hop that it came on. */
export function inputRequest ({ method, params, paramsText }: Question): string {
  const text = withoutProgressToken(paramsText)
  const own = params.elicitationId === undefined ? text : withMembers(text, { elicitationId: undefined })
  return `{"method":${JSON.stringify(method)}${own === '{}' ? '' : `,"params":${own}`}}`
}
