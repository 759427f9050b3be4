import { code, UpstreamError } from '../errors.ts'
import { toRpcError } from '../message.ts'
import { messagesIn } from './transport.ts'

/** What an HTTP status that is no success means for the request. @param inSession the request named a session */
export function refusal (status: number, text: string, inSession: boolean): UpstreamError {
  if (inSession && (status === 404 || (status === 400 && /session/i.test(text.slice(0, 1_000))))) {
    return new UpstreamError('expired', 'the upstream no longer knows our session')
  }
  if (status === 401) return new UpstreamError('unauthorized', 'the upstream wants credentials (HTTP 401): check the configured headers')
  // What stands before it gave up: it may be at work.
  return new UpstreamError(status === 502 || status === 504 ? 'broken' : 'refused', `the upstream answered HTTP ${status}`, '', status)
}

/** The codes that servers answer with under the id of a request whose session they do not know. */
const saysGone = (errorText: string | undefined): boolean =>
  errorText !== undefined && [code.badRequest, code.unavailable].some((each) => each === toRpcError(errorText).code)

/** True for an answer to this very request in spite of its status: not for one that says that our session is gone, or that we have no credentials. */
export function isAnswer (status: number, text: string, id: number): boolean {
  if (status < 400 || status === 401) return false
  try {
    return messagesIn(text).some((message) => message.kind === 'response' && message.id === id && !saysGone(message.errorText))
  } catch {
    return false
  }
}
