import type { ClientCapabilities } from '../../../protocol/capabilities.ts'
import { isEventErrorCode } from '../../../protocol/events.ts'
import { rpcCode, RpcError, type ErrorReason } from '../../../protocol/errors.ts'
import { isObject, memberOf, parseSmallMember, withMembers } from '../../../protocol/json.ts'
import { isModernErrorCode, modernErrorCode } from '../../../protocol/modern/envelope.ts'

/** The answer to a request. `status`: the HTTP status. */
export interface RequestOutcome {
  readonly kind: 'result' | 'error'
  /** The text of the member `result` or `error`. */
  readonly text: string | Buffer
  readonly status: number
}

/** HTTP statuses of errors in the request itself (MCP 2026-07-28, "Streamable HTTP"), by error code. */
const statuses: Readonly<Record<number, number>> = {
  [rpcCode.parse]: 400,
  [rpcCode.invalidRequest]: 400,
  [rpcCode.methodNotFound]: 404,
  [modernErrorCode.headerMismatch]: 400,
  [modernErrorCode.missingCapability]: 400,
  [modernErrorCode.unsupportedVersion]: 400
}

/** HTTP statuses of errors about limits: 503 for a limit of all callers together, 429 for the share of one caller. */
const statusesByReason: Partial<Record<ErrorReason, number>> = { limit: 503, share: 429 }

/** Returns the HTTP status of an error. @param other the status if neither the reason nor the code determines one */
export const httpStatusOf = ({ reason, code }: RpcError, other = 200): number =>
  statusesByReason[reason] ?? statuses[code] ?? other

/**
 * Translates an error for a modern client. Codes of earlier revisions are replaced. If a server rejects the form of the
 * gateway's request, the client gets an internal error, unless it lacks a capability that the server requires.
 */
export function errorOutcome (error: RpcError, capabilities: ClientCapabilities): RequestOutcome {
  const translated = error.reason === 'upstream' ? translateUpstreamError(error, capabilities) : error
  const text = translated.toText()
  switch (translated.code) {
    case rpcCode.resourceNotFound:
      return failureOutcome(withMembers(text, { code: String(rpcCode.invalidParams) }), 200)
    // A client that can be asked gets a question instead (`elicitationOf`).
    case rpcCode.urlElicitationRequired: return urlElicitationOutcome(text, translated, capabilities)
    default: return isReserved(translated.code)
      ? failureOutcome(withMembers(text, { code: String(rpcCode.internal) }), 200)
      : failureOutcome(text, httpStatusOf(translated))
  }
}

/** Whether MCP 2026-07-28 reserves a code ("Error Codes"). A legacy server may use it with another meaning. */
const isReserved = (number: number): boolean =>
  number >= -32099 && number < modernErrorCode.unsupportedVersion && !isEventErrorCode(number)

const urlElicitation = { elicitation: { url: {} } }

/**
 * Returns the answer for error -32042 to a client that cannot be asked, because it lacks the capability, or because the
 * method does not allow questions.
 */
function urlElicitationOutcome (text: string, { message }: RpcError, capabilities: ClientCapabilities): RequestOutcome {
  if (missingOf(urlElicitation, capabilities) === undefined) {
    return failureOutcome(withMembers(text, { code: String(rpcCode.internal) }), 200)
  }
  return failureOutcome(missingCapabilitiesError(message, urlElicitation).toText(), 400)
}

const failureOutcome = (text: string, status: number): RequestOutcome => ({ kind: 'error', text, status })

function translateUpstreamError (error: RpcError, capabilities: ClientCapabilities): RpcError {
  // A modern server's session has already translated some codes to `invalidRequest`.
  const mayLack = error.code === modernErrorCode.missingCapability || error.code === rpcCode.invalidRequest
  const missing = mayLack ? missingIn(error.toText(), capabilities) : undefined
  if (missing === undefined && !isModernErrorCode(error.code)) return error
  if (missing === undefined) {
    const message = `The server rejected the gateway's request: ${error.message}`
    const changes = { code: String(rpcCode.internal), message: JSON.stringify(message) }
    return new RpcError(rpcCode.internal, message, 'upstream', withMembers(error.toText(), changes))
  }
  return missingCapabilitiesError(error.message, missing)
}

/** Whether an error says that the caller's view does not show the requested tool, prompt or resource. */
export const isUnknownItemError = ({ reason }: RpcError): boolean =>
  reason === 'unknown-tool' || reason === 'unknown-prompt' || reason === 'unknown-resource'

/** Creates error -32021: the request requires capabilities that the client has not declared. */
export function missingCapabilitiesError (
  message: string, requiredCapabilities: Readonly<Record<string, unknown>>
): RpcError {
  const number = modernErrorCode.missingCapability
  return new RpcError(
    number, message, 'upstream', JSON.stringify({ code: number, message, data: { requiredCapabilities } })
  )
}

/**
 * Returns the capabilities that a server's error requires but the client has not declared; undefined if there are none.
 * @param text the text of the error
 */
function missingIn (text: string, capabilities: ClientCapabilities): Record<string, unknown> | undefined {
  const required = parseSmallMember(memberOf(text, 'data') ?? '{}', 'requiredCapabilities')
  return isObject(required) ? missingOf(required, capabilities) : undefined
}

function missingOf (
  required: Readonly<Record<string, unknown>>, capabilities: ClientCapabilities
): Record<string, unknown> | undefined {
  const missing = Object.entries(required).filter(([name, value]) => isMissing(capabilities[name], value))
  return missing.length === 0 ? undefined : Object.fromEntries(missing)
}

const isMissing = (own: unknown, required: unknown): boolean =>
  own === undefined ||
    (isObject(own) && isObject(required) && Object.keys(required).some((name) => own[name] === undefined))
