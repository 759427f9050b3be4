import { code, UpstreamError } from '../errors.ts'
import { isModernCode } from '../modern/envelope.ts'
import { toRpcError } from '../message.ts'
import { parseMessages } from './transport.ts'

/**
 * Statuses for requests that a server does not understand (MCP 2026-07-28, "Streamable HTTP", "Backward
 * Compatibility").
 */
const notUnderstood: ReadonlySet<number> = new Set([400, 404, 405])

/**
 * Creates the error for an HTTP status other than success.
 * @param inSession whether the request contained a session id
 * @param inHandshake whether the upstream has answered `initialize`
 */
export function refusalError (status: number, text: string, inSession = false, inHandshake = inSession): UpstreamError {
  const isGone = inSession && (status === 404 || (status === 400 && /session/i.test(text.slice(0, 1_000))))
  if (isGone || (inHandshake && isModernRefusal(status, text))) {
    return new UpstreamError('expired', 'the upstream no longer knows our session', { isPublic: true })
  }
  if (status === 401) {
    return new UpstreamError('unauthorized', 'the upstream wants credentials (HTTP 401): check the configured headers')
  }
  // A proxy's timeout: the upstream may still be working on the request.
  return new UpstreamError(
    status === 502 || status === 504 ? 'broken' : 'refused', `the upstream answered HTTP ${status}`, { status }
  )
}

/** Creates the error for the status of a request without a session. A request that was not understood did not run. */
export function statelessError (status: number, text: string): UpstreamError {
  if (!notUnderstood.has(status)) return refusalError(status, text)
  return new UpstreamError('expired', 'the upstream does not speak the MCP revision that it was spoken to in (HTTP ' +
    `${status})`, {
    status,
    isPublic: true
  })
}

/** Whether a modern server has replaced a legacy one: it refuses a request without the envelope in `_meta`. */
export function isModernRefusal (status: number, text: string): boolean {
  if (status !== 400) return false
  try {
    return parseMessages(text).some((message) =>
      message.kind === 'response' && message.errorText !== undefined &&
        isModernCode(toRpcError(message.errorText).code))
  } catch {
    return false
  }
}

/** Whether an error has one of the codes that servers use for an unknown session. */
const isSessionGone = (errorText: string | undefined): boolean =>
  errorText !== undefined && [code.badRequest, code.unavailable].some((each) => each === toRpcError(errorText).code)

/** Whether an HTTP error's body is a JSON-RPC answer to this request. False for 401, and for an unknown session. */
export function isRpcAnswer (status: number, text: string, id: number): boolean {
  if (status < 400 || status === 401) return false
  try {
    return parseMessages(text).some((message) =>
      message.kind === 'response' && message.id === id && !isSessionGone(message.errorText))
  } catch {
    return false
  }
}
