import { randomUUID } from 'node:crypto'
import { code, RpcError } from './errors.ts'
import type { Request } from './message.ts'
import type { Peer } from './peer.ts'

/** The member of `_meta` by which a gateway identifies itself when it connects. */
export const instanceKey = 'tool-hub/instance'

/**
 * Identifies this process. By it, a gateway detects that it is its own upstream, whose lists would grow without end.
 */
export const instanceId = randomUUID()

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
