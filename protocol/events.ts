// The Events extension, `io.modelcontextprotocol/events` (SEP-3415), of MCP 2026-07-28 and later: what both sides of
// the gateway need of it. All texts are JSON.
import { code, RpcError } from './errors.ts'
import { isObject, memberOf, smallMemberOf, withMembers } from './json.ts'
import { metaKeys } from './modern/envelope.ts'

/** The error codes that SEP-3415 adds ("Error Handling"). `data` tells the cases of one code apart. */
export const eventCode = {
  notFound: -32023,
  forbidden: -32024,
  resourceExhausted: -32025,
  unsupported: -32026,
  callbackEndpoint: -32027
} as const

const messages: Readonly<Record<keyof typeof eventCode, string>> = {
  notFound: 'NotFound',
  forbidden: 'Forbidden',
  resourceExhausted: 'ResourceExhausted',
  unsupported: 'Unsupported',
  callbackEndpoint: 'CallbackEndpointError'
}

export const isEventCode = (number: number): boolean =>
  number <= eventCode.notFound && number >= eventCode.callbackEndpoint

/** An error of the extension. @param sentence for people, appended to the name of the error */
export function eventError (
  name: keyof typeof eventCode, data: Readonly<Record<string, unknown>>, sentence?: string
): RpcError {
  const message = sentence === undefined ? messages[name] : `${messages[name]}: ${sentence}`
  return new RpcError(eventCode[name], message, 'request', JSON.stringify({ code: eventCode[name], message, data }))
}

/** The request that is answered when its subscription ends: its events are notifications until then. */
export const streamMethod = 'events/stream'

/** Such a request may last: only its silence ends it. */
export const streamDeadlines = { resetTimeoutOnProgress: true, maxTotalTimeout: undefined }

/** Whether a notification belongs to one `events/stream`. */
export const isStreamNotification = (method: string): boolean =>
  method.startsWith('notifications/events/') && method !== 'notifications/events/list_changed'

/** The id of the request that a notification of a stream belongs to. */
export const streamIdOf = ({ _meta: meta }: Readonly<Record<string, unknown>>): unknown =>
  isObject(meta) ? meta[metaKeys.subscriptionId] : undefined

/** The text of params or of a result with another id of its stream. */
export function withStreamId (text: string, idText: string): string {
  const meta = memberOf(text, '_meta')
  const own = meta?.startsWith('{') === true ? meta : '{}'
  return withMembers(text, { _meta: withMembers(own, { [metaKeys.subscriptionId]: idText }) })
}

/** How the events of a subscription are shown to a client. */
export interface EventPresentation {
  /** The name of the event type for the client. */
  readonly name: string
  /** The cursor for the client, for a server's own. */
  readonly cursor: (own: string) => string
}

/** An object of a server with a cursor (a result, a notification, the body of a webhook) as its client sees it. */
export function withClientCursor (text: string, { cursor }: Pick<EventPresentation, 'cursor'>): string {
  const own = smallMemberOf(text, 'cursor')
  return typeof own === 'string' ? withMembers(text, { cursor: JSON.stringify(cursor(own)) }) : text
}

/** An event, or another object with a cursor, as its client sees it. */
export function withClientEvent (text: string, presentation: EventPresentation): string {
  const named = memberOf(text, 'name') === undefined
    ? text
    : withMembers(text, { name: JSON.stringify(presentation.name) })
  return withClientCursor(named, presentation)
}

/** The name in params about one event type. @throws RpcError -32602 */
export function eventNameOf ({ name }: Readonly<Record<string, unknown>>): string {
  if (typeof name === 'string') return name
  throw new RpcError(code.invalidParams, 'Invalid params: "name" must be the name of an event type')
}
