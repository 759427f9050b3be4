import { randomUUID } from 'node:crypto'
import { code, RpcError } from './errors.ts'
import { isObject, memberOf, smallMemberOf, withMembers } from './json.ts'
import type { Request } from './message.ts'
import type { Peer } from './peer.ts'

/** The member of `_meta` with which a gateway identifies itself when it connects. */
export const instanceKey = 'tool-hub/instance'

/**
 * Identifies this process. It lets a gateway detect that it is its own upstream; otherwise its lists would grow without
 * end.
 */
export const instanceId = randomUUID()

/** A gateway's `name` in `serverInfo`. */
export const gatewayName = 'tool-hub'

/** Sent with every HTTP request unless it has its own: many firewalls refuse requests without a user agent. */
export const defaultHeaders = { 'user-agent': gatewayName } as const

/** The member of an item's `_meta` that lists the ids of the gateways that passed the item on, the nearest one last. */
const viaKey = 'tool-hub/via'

/**
 * Returns the id of the gateway that sent the request; undefined if it was not sent by a gateway that lists this
 * gateway's items.
 */
export function requestingInstance ({ _meta: meta }: Readonly<Record<string, unknown>>): string | undefined {
  const id = isObject(meta) ? meta[instanceKey] : undefined
  return typeof id === 'string' ? id : undefined
}

/**
 * Marks an item as passed on by this gateway, for another gateway that lists it. Without the mark, the lists of two
 * gateways that list each other would grow without end.
 * @param text the item as JSON
 * @param asking the id of the other gateway
 * @returns undefined if the item has already passed through that gateway
 */
export function markForwarded (text: string, asking: string): string | undefined {
  const meta = memberOf(text, '_meta') ?? '{}'
  const via = smallMemberOf(meta, viaKey)
  const ids: unknown[] = Array.isArray(via) ? via : []
  if (ids.includes(asking)) return undefined
  return withMembers(text, { _meta: withMembers(meta, { [viaKey]: JSON.stringify([...ids, instanceId]) }) })
}

/** The error for a gateway that is configured as its own upstream. */
export const selfReferenceMessage =
  'This address is the gateway\'s own: a server cannot be the gateway that it is configured in'

/** The requests with which the gateway opens a connection. Only clients send them. */
const openingMethods: ReadonlySet<string> = new Set(['initialize', 'server/discover'])

/**
 * Refuses a request that only clients send. A program that echoes its input, such as `cat`, echoes this error too,
 * which then fails the connection.
 * @returns false for any other request, which is left unanswered
 */
export function refuseEcho (peer: Peer, { method, id, idText }: Request): boolean {
  if (!openingMethods.has(method)) return false
  const failure = new RpcError(code.methodNotFound, 'It echoes its input: it is not an MCP server')
  peer.answer(idText, { kind: 'response', id, errorText: failure.toText() })
  return true
}
