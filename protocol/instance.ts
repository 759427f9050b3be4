import { randomUUID } from 'node:crypto'
import { code, RpcError } from './errors.ts'
import { isObject, memberOf, smallMemberOf, withMembers } from './json.ts'
import type { Request } from './message.ts'
import type { Peer } from './peer.ts'

/** The member of `_meta` by which a gateway identifies itself when it connects. */
export const instanceKey = 'tool-hub/instance'

/** Identifies this process. A gateway that is its own upstream detects that by it: lists would grow without end. */
export const instanceId = randomUUID()

/** The `name` in `serverInfo` of a gateway. */
export const gatewayName = 'tool-hub'

/** The member of an item's `_meta` with the ids of the gateways through which it came, the nearest one last. */
const viaKey = 'tool-hub/via'

/** The id of the gateway that sent a request, if it is one that lists this gateway's items. */
export function askingInstance ({ _meta: meta }: Readonly<Record<string, unknown>>): string | undefined {
  const id = isObject(meta) ? meta[instanceKey] : undefined
  return typeof id === 'string' ? id : undefined
}

/**
 * An item as another gateway may list it: marked as having come through this one. Without it, the lists of two gateways
 * that list each other would grow without end.
 * @param text the item as JSON
 * @param asking the id of the other gateway
 * @returns undefined if the item came through that gateway before
 */
export function passItemOn (text: string, asking: string): string | undefined {
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
 * Refuses a request that only clients send. A program that echoes its input, as `cat` does, echoes this error as well,
 * which then fails the connection.
 * @returns false for any other request, which is not answered
 */
export function refuseEcho (peer: Peer, { method, id, idText }: Request): boolean {
  if (!openingMethods.has(method)) return false
  const failure = new RpcError(code.methodNotFound, 'It sends back what it is sent: it is no MCP server')
  peer.answer(idText, { kind: 'response', id, errorText: failure.toText() })
  return true
}
