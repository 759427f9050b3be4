import { rpcCode, RpcError, UpstreamError } from '../errors.ts'
import { isModernErrorCode } from '../modern/envelope.ts'
import { parseRpcError, type Message } from '../message.ts'
import { parseMessages } from './transport.ts'
import { noRateLimit, type MessageRateLimiter } from './valve.ts'

/**
 * The statuses with which legacy servers refuse modern requests (MCP 2026-07-28, "Streamable HTTP", "Backward
 * Compatibility").
 */
const notUnderstood: ReadonlySet<number> = new Set([400, 404, 405])

/** Whether a text says that a session is unknown. Used if neither the status nor an error code shows it. */
const saysLostSession = (text: string): boolean =>
  /\b(unknown|invalid|expired|no valid|no such)[\s-]+(mcp[\s-]+)?session/i.test(text) ||
  /\bsession\b.{0,60}\b(not found|not exist|unknown|invalid|expired|terminated)\b/i.test(text)

/** Whether an HTTP error for a request with a session id means that the server does not know the session. */
export function isSessionLost (status: number, text: string): boolean {
  const words = text.slice(0, 1_000)
  switch (status) {
    case 404: case 410: return true
    case 400: return /session|not initialized/i.test(words)
    case 401: case 503: return saysLostSession(words)
    default: return false
  }
}

/**
 * Creates the error for an HTTP status other than success.
 * @param inSession whether the request had a session id
 * @param isInitialized whether the upstream has answered `initialize`
 */
export function httpStatusError (
  status: number, text: string, inSession = false, isInitialized = inSession
): UpstreamError {
  if ((inSession && isSessionLost(status, text)) || (isInitialized && isModernErrorAnswer(status, text))) {
    return new UpstreamError('expired', 'the upstream no longer knows the session', { isPublic: true })
  }
  if (status === 401) {
    return new UpstreamError(
      'unauthorized', 'the upstream requires credentials (HTTP 401): check the configured headers'
    )
  }
  // A proxy's timeout: the upstream may still be working on the request.
  return new UpstreamError(
    status === 502 || status === 504 ? 'broken' : 'refused', `the upstream answered HTTP ${status}`, { status }
  )
}

/** The codes of errors that do not concern the session. */
const otherCodes: ReadonlySet<number> = new Set([rpcCode.invalidParams, rpcCode.methodNotFound, rpcCode.internal])

/** Creates the error for a JSON-RPC error (HTTP status 2xx) that says that the session is unknown; else undefined. */
export function lostSessionErrorIn (errorText: string): UpstreamError | undefined {
  const error = parseRpcError(errorText)
  const isLost = !otherCodes.has(error.code) &&
    (saysLostSession(error.message) || /\bserver not initialized\b/i.test(error.message))
  // The client gets the server's message if a new session does not help.
  return isLost
    ? new UpstreamError('expired', `the upstream no longer knows the session: ${error.message}`, { isPublic: true })
    : undefined
}

/** Whether such an error says that the server was not initialized, which no tool says of anything else. */
export const isNotInitialized = ({ message }: UpstreamError): boolean => /\bserver not initialized\b/i.test(message)

/** Whether a message is a request whose error is never that of a tool: a ping, or the request for a list. */
export const isCheck = (text: unknown): boolean =>
  typeof text === 'string' && /^\{"jsonrpc":"2\.0","id":\d+,"method":"(?:ping|[a-z/]+\/list)"/.test(text)

/** Creates the error for an HTTP error answer to a modern request, which legacy servers refuse without running it. */
export function modernHttpStatusError (status: number, text: string): UpstreamError {
  if (!notUnderstood.has(status)) return httpStatusError(status, text)
  return new UpstreamError('expired', 'the upstream does not support the MCP revision of the request (HTTP ' +
    `${status})`, {
    status,
    isPublic: true
  })
}

/**
 * Whether an HTTP 400 answer contains an error with a code of the modern era. In answer to a legacy request, this means
 * that the server supports only the modern era.
 */
export function isModernErrorAnswer (status: number, text: string): boolean {
  if (status !== 400) return false
  try {
    return parseMessages(text).some((message) =>
      message.kind === 'response' && message.errorText !== undefined &&
        isModernErrorCode(parseRpcError(message.errorText).code))
  } catch {
    return false
  }
}

/** Whether an error has a code that servers use for unknown sessions, or says that the session is unknown. */
function isUnknownSession (errorText: string | undefined): boolean {
  if (errorText === undefined) return false
  const error = parseRpcError(errorText)
  return error.code === rpcCode.badRequest || error.code === rpcCode.unavailable ||
    (!otherCodes.has(error.code) && saysLostSession(error.message))
}

/**
 * Whether an error answer to a modern request says that it is about something that only the legacy era has: a session,
 * or a choice of the protocol version. Servers have no code for that.
 */
function isFromLegacyServer (errorText: string | undefined): boolean {
  if (errorText === undefined) return false
  const { code, message } = parseRpcError(errorText)
  return !otherCodes.has(code) && /\bsession\b|not initialized|protocol[\s-]version/i.test(message)
}

/**
 * Whether an HTTP error's body has a JSON-RPC answer to this request. False for 401, and for an unknown session.
 * @param isStateless whether the request is of the modern era. An error with status 400 needs no id then, but without
 *   one, a legacy server's error is no answer, since such a server did not understand the request
 */
export function isRpcAnswer (status: number, text: string, id: number, isStateless: boolean): boolean {
  if (status < 400 || status === 401) return false
  try {
    return parseMessages(text).some((message) => {
      if (message.kind !== 'response') return false
      return isStateless
        ? message.id === id || (message.id === null && status === 400 && !isFromLegacyServer(message.errorText))
        : message.id === id && !isUnknownSession(message.errorText)
    })
  } catch {
    return false
  }
}

/**
 * Parses an event of a request's stream. An event that is not a message is ignored, since some servers keep streams
 * alive with such events.
 * @throws RpcError if the event is an invalid answer
 */
export function parseEventMessages (text: string, pace: MessageRateLimiter = noRateLimit): Message[] {
  try {
    return parseMessages(text)
  } catch (error) {
    if (/"(?:result|error)"\s*:/.test(text)) throw error
    pace.count('noise', text.length)
    return []
  }
}

/** Matches a media type that cannot contain messages, such as `text/html` for a proxy's error page. */
const nonMessageType = /^(?!text\/event-stream$)(?!.*json)[\w.+-]{1,60}\/[\w.+-]{1,60}$/

/**
 * Creates the error for an answer that is too large or not a message; undefined for other errors.
 * @param type the answer's media type
 */
export function unreadableError (error: Error, type: string): UpstreamError | undefined {
  const options = { isPublic: true, isAnswered: true }
  if (error instanceof RangeError) {
    return new UpstreamError('broken', `the upstream's answer is too large: ${error.message}`, options)
  }
  if (!(error instanceof SyntaxError || error instanceof RpcError)) return undefined
  const isPage = error instanceof RpcError && error.code === rpcCode.parse && nonMessageType.test(type)
  return new UpstreamError('broken', isPage
    ? `the upstream answered with ${type} instead of JSON`
    : `the upstream's answer cannot be read: ${error.message}`, options)
}
