import { mayBeAsked, type ClientCapabilities } from '../../../protocol/capabilities.ts'
import { code, RpcError } from '../../../protocol/errors.ts'
import type { Question } from '../../../protocol/exchange.ts'
import { isObject, withMembers } from '../../../protocol/json.ts'
import { withoutProgressToken } from '../../../protocol/progress.ts'

/** What a client of this era can be asked (MCP 2026-07-28, `InputRequest`). */
const known: ReadonlySet<string> = new Set(['elicitation/create', 'sampling/createMessage', 'roots/list'])

/** @throws RpcError to answer the server with, when the client has not declared that it can be asked this */
export function checkAskable (capabilities: ClientCapabilities, { method, params }: Question): void {
  if (!known.has(method) || !mayBeAsked(capabilities, method)) {
    throw new RpcError(code.methodNotFound, `The client does not support ${method}`)
  }
  const { elicitation, sampling } = capabilities
  if (method === 'elicitation/create' && isObject(elicitation)) {
    const mode = params.mode === 'url' ? 'url' : 'form'
    // No mode at all stands for forms.
    const can = elicitation[mode] !== undefined || (mode === 'form' && elicitation.url === undefined)
    if (!can) throw new RpcError(code.invalidParams, `The client does not support elicitation of mode ${mode}`)
  }
  if (method === 'sampling/createMessage' && params.tools !== undefined && isObject(sampling) && sampling.tools === undefined) {
    throw new RpcError(code.invalidParams, 'The client does not support sampling with tools')
  }
}

/** A question as an element of `inputRequests`, as JSON text: without what belongs to the hop that it came on. */
export function inputRequest ({ method, params, paramsText }: Question): string {
  const text = withoutProgressToken(paramsText)
  const own = params.elicitationId === undefined ? text : withMembers(text, { elicitationId: undefined })
  return `{"method":${JSON.stringify(method)}${own === '{}' ? '' : `,"params":${own}`}}`
}
