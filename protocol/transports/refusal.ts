import { code, UpstreamError } from '../errors.ts'
import { toRpcError } from '../message.ts'
import { messagesIn } from './transport.ts'

/** The error for an HTTP status that is not a success. @param inSession the request named a session */
export function refusal (status: number, text: string, inSession: boolean): UpstreamError {
  if (inSession && (status === 404 || (status === 400 && /session/i.test(text.slice(0, 1_000))))) {
    return new UpstreamError('expired', 'the upstream no longer knows our session', { isPublic: true })
  }
  if (status === 401) return new UpstreamError('unauthorized', 'the upstream wants credentials (HTTP 401): check the configured headers')
  // A proxy gave up waiting: the upstream may still be working on the request.
  return new UpstreamError(status === 502 || status === 504 ? 'broken' : 'refused', `the upstream answered HTTP ${status}`, { status })
}

/** True for an error with one of the codes that servers use for a request of an unknown session. */
const isSessionGone = (errorText: string | undefined): boolean =>
  errorText !== undefined && [code.badRequest, code.unavailable].some((each) => each === toRpcError(errorText).code)

/**
 * True when the body of an HTTP error is a JSON-RPC answer to this request. False for 401, and for an answer that says that the session is
 * unknown.
 */
export function isAnswer (status: number, text: string, id: number): boolean {
  if (status < 400 || status === 401) return false
  try {
    return messagesIn(text).some((message) => message.kind === 'response' && message.id === id && !isSessionGone(message.errorText))
  } catch {
    return false
  }
}
