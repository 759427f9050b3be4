import { randomUUID } from 'node:crypto'
import { code, RpcError } from './errors.ts'
import type { Request } from './message.ts'
import type { Peer } from './peer.ts'

/** The member of `_meta` by which a gateway identifies itself in `initialize`. */
export const instanceKey = 'tool-hub/instance'

/** Identifies this process among gateways, so that one that is configured as its own upstream notices: its lists would grow without end. */
export const instance = randomUUID()

/** The answer to a gateway that is configured as its own upstream. */
export const ownAddress = 'This address is the gateway\'s own: a server cannot be the gateway that it is configured in'

/** The requests with which the gateway begins. Only clients send them. */
const beginnings: ReadonlySet<string> = new Set(['initialize', 'server/discover'])

/**
 * Refuses a request of a server that only clients send. A program that writes what it reads, as `cat` does, has this error come back as its
 * own answer, and so it is told.
 * @returns false for every other request, which is not answered
 */
export function refuseEcho (peer: Peer, { method, id, idText }: Request): boolean {
  if (!beginnings.has(method)) return false
  const failure = new RpcError(code.methodNotFound, 'It sends back what it is sent: it is no MCP server')
  peer.answer(idText, { kind: 'response', id, errorText: failure.toText() })
  return true
}
