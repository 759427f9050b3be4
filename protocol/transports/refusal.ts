import { code, UpstreamError } from '../errors.ts'
import { isModernCode } from '../modern/envelope.ts'
import { toRpcError } from '../message.ts'
import { messagesIn } from './transport.ts'

/**
 * Statuses of servers that do not know what a request wants of them (MCP 2026-07-28, "Streamable HTTP", "Backward
 * Compatibility").
 */
const unknown: ReadonlySet<number> = new Set([400, 404, 405])

/**
 * The error for an HTTP status that is not a success.
 * @param inSession the request named a session
 * @param inHandshake the upstream has answered `initialize`
 */
export function refusal (status: number, text: string, inSession = false, inHandshake = inSession): UpstreamError {
  const isGone = inSession && (status === 404 || (status === 400 && /session/i.test(text.slice(0, 1_000))))
  if (isGone || (inHandshake && isModernRefusal(status, text))) {
    return new UpstreamError('expired', 'the upstream no longer knows our session', { isPublic: true })
  }
  if (status === 401) {
    return new UpstreamError('unauthorized', 'the upstream wants credentials (HTTP 401): check the configured headers')
  }
  // A proxy gave up waiting: the upstream may still be working on the request.
  return new UpstreamError(
    status === 502 || status === 504 ? 'broken' : 'refused', `the upstream answered HTTP ${status}`, { status }
  )
}

/**
 * The error for such a status of a request that belongs to no session: one that the upstream has not understood has not
 * run.
 */
export function statelessRefusal (status: number, text: string): UpstreamError {
  if (!unknown.has(status)) return refusal(status, text)
  return new UpstreamError('expired', 'the upstream does not speak the MCP revision that it was spoken to in (HTTP ' +
    `${status})`, {
    status,
    isPublic: true
  })
}

/**
 * True when the server of an earlier revision has given way to one of the modern era: it refuses a request that has no
 * `_meta` of it.
 */
export function isModernRefusal (status: number, text: string): boolean {
  if (status !== 400) return false
  try {
    return messagesIn(text).some((message) =>
      message.kind === 'response' && message.errorText !== undefined &&
        isModernCode(toRpcError(message.errorText).code))
  } catch {
    return false
  }
}

/** True for an error with one of the codes that servers use for a request of an unknown session. */
const isSessionGone = (errorText: string | undefined): boolean =>
  errorText !== undefined && [code.badRequest, code.unavailable].some((each) => each === toRpcError(errorText).code)

/**
 * True when the body of an HTTP error is a JSON-RPC answer to this request. False for 401, and for an answer that says
 * that the session is unknown.
 */
export function isAnswer (status: number, text: string, id: number): boolean {
  if (status < 400 || status === 401) return false
  try {
    return messagesIn(text).some((message) =>
      message.kind === 'response' && message.id === id && !isSessionGone(message.errorText))
  } catch {
    return false
  }
}
