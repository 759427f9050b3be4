import { randomUUID } from 'node:crypto'
import { rpcCode, RpcError } from './errors.ts'
import { isObject, memberOf, parseSmallMember, withMembers } from './json.ts'
import type { Request } from './message.ts'
import type { RpcConnection } from './peer.ts'

/** The member of `_meta` in which a gateway sends its `instanceId` to servers. */
export const instanceMetaKey = 'tool-hub/instance'

/**
 * Identifies this process, so that a gateway notices that it is its own upstream, and does not list its own items again
 * and again.
 */
export const instanceId = randomUUID()

/** A gateway's `name` in `serverInfo`. */
export const gatewayName = 'tool-hub'

/** The default headers of HTTP requests. Many firewalls refuse requests without a user agent. */
export const defaultHeaders = { 'user-agent': gatewayName } as const

/** The member of an item's `_meta` with the ids of the gateways that have forwarded it, the nearest one last. */
const viaKey = 'tool-hub/via'

/**
 * Returns the `instanceId` that another gateway states when it requests a list; undefined for other clients.
 */
export function requestingInstance ({ _meta: meta }: Readonly<Record<string, unknown>>): string | undefined {
  const id = isObject(meta) ? meta[instanceMetaKey] : undefined
  return typeof id === 'string' ? id : undefined
}

/**
 * Marks an item as forwarded by this gateway, for another gateway that lists it. Without the mark, the lists of two
 * gateways that are each other's upstream would grow without end.
 * @param text the item, as JSON text
 * @param asking the id of the other gateway
 * @returns undefined if the other gateway has forwarded the item already
 */
export function markItemForwarded (text: string, asking: string): string | undefined {
  const meta = memberOf(text, '_meta') ?? '{}'
  const via = parseSmallMember(meta, viaKey)
  const ids: unknown[] = Array.isArray(via) ? via : []
  if (ids.includes(asking)) return undefined
  return withMembers(text, { _meta: withMembers(meta, { [viaKey]: JSON.stringify([...ids, instanceId]) }) })
}

/** The message for a server that turns out to be this gateway. */
export const selfReferenceMessage =
  'This address is the gateway\'s own: a server cannot be the gateway that it is configured in'

/** The requests that open a connection. Only clients send them. */
const openingMethods: ReadonlySet<string> = new Set(['initialize', 'server/discover'])

/**
 * Answers a server's request with an error if only clients send such requests: the server is a program that echoes its
 * input, such as `cat`. It echoes the error, too, which then fails the gateway's own request.
 * @returns false for any other request, which is not answered
 */
export function refuseEchoedRequest (connection: RpcConnection, { method, id, idText }: Request): boolean {
  if (!openingMethods.has(method)) return false
  const failure = new RpcError(rpcCode.methodNotFound, 'It echoes its input: it is not an MCP server')
  connection.answer(idText, { kind: 'response', id, errorText: failure.toText() })
  return true
}
