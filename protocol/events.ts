// The Events extension, `io.modelcontextprotocol/events` (SEP-3415), of MCP 2026-07-28 and later: the parts that both
// sides of the gateway use. All texts are JSON.
import { rpcCode, RpcError } from './errors.ts'
import { isObject, memberOf, parseSmallMember, withMembers } from './json.ts'
import { metaKeys } from './modern/envelope.ts'

/** The error codes of SEP-3415 ("Error Handling"). An error's `data` tells apart the cases that share a code. */
export const eventErrorCode = {
  notFound: -32023,
  forbidden: -32024,
  resourceExhausted: -32025,
  unsupported: -32026,
  callbackEndpoint: -32027
} as const

const messages: Readonly<Record<keyof typeof eventErrorCode, string>> = {
  notFound: 'NotFound',
  forbidden: 'Forbidden',
  resourceExhausted: 'ResourceExhausted',
  unsupported: 'Unsupported',
  callbackEndpoint: 'CallbackEndpointError'
}

export const isEventErrorCode = (number: number): boolean =>
  number <= eventErrorCode.notFound && number >= eventErrorCode.callbackEndpoint

/** Creates an error of the extension. @param sentence an explanation for people */
export function eventError (
  name: keyof typeof eventErrorCode, data: Readonly<Record<string, unknown>>, sentence?: string
): RpcError {
  const message = sentence === undefined ? messages[name] : `${messages[name]}: ${sentence}`
  return new RpcError(
    eventErrorCode[name], message, 'request', JSON.stringify({ code: eventErrorCode[name], message, data })
  )
}

/**
 * The method of the request that opens an event stream. Events arrive as notifications; the request is answered when
 * the stream ends.
 */
export const streamMethod = 'events/stream'

/** The deadlines of an `events/stream` request: it may stay open as long as messages arrive. */
export const streamDeadlines = { resetTimeoutOnProgress: true, maxTotalTimeout: undefined }

/** Whether a notification belongs to an `events/stream` request. */
export const isStreamNotification = (method: string): boolean =>
  method.startsWith('notifications/events/') && method !== 'notifications/events/list_changed'

/** Returns the id of the `events/stream` request that a notification with these params belongs to. */
export const streamIdOf = ({ _meta: meta }: Readonly<Record<string, unknown>>): unknown =>
  isObject(meta) ? meta[metaKeys.subscriptionId] : undefined

/** Replaces the id of the `events/stream` request in the text of params or of a result. */
export function withStreamId (text: string, idText: string): string {
  const meta = memberOf(text, '_meta')
  const own = meta?.startsWith('{') === true ? meta : '{}'
  return withMembers(text, { _meta: withMembers(own, { [metaKeys.subscriptionId]: idText }) })
}

/** How a client sees the events of a subscription, whose name and cursors may differ from the server's. */
export interface EventPresentation {
  /** The name by which the client knows the type of the events. */
  readonly name: string
  /** Converts the server's cursor to the client's. */
  readonly toClientCursor: (own: string) => string
}

/** Replaces the server's cursor in an object (a result, a notification, or the body of a webhook) by the client's. */
export function withClientCursor (text: string, { toClientCursor }: Pick<EventPresentation, 'toClientCursor'>): string {
  const own = parseSmallMember(text, 'cursor')
  return typeof own === 'string' ? withMembers(text, { cursor: JSON.stringify(toClientCursor(own)) }) : text
}

/** Replaces the server's name and cursor in an event, or in any object with these members, by the client's. */
export function withClientEvent (text: string, presentation: EventPresentation): string {
  const named = memberOf(text, 'name') === undefined
    ? text
    : withMembers(text, { name: JSON.stringify(presentation.name) })
  return withClientCursor(named, presentation)
}

/** Returns the name of the event type that a request's params state. @throws RpcError -32602 */
export function eventNameOf ({ name }: Readonly<Record<string, unknown>>): string {
  if (typeof name === 'string') return name
  throw new RpcError(rpcCode.invalidParams, 'Invalid params: "name" must be the name of an event type')
}
