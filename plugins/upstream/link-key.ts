import { canBeAsked, classOf, plainClass, type ClientCapabilities } from '../../protocol/legacy/capabilities.ts'

export type Isolation = 'auto' | 'shared' | 'session' | 'user'
export type Affinity = 'shared' | 'session' | 'user'

/** What of a server decides who shares a connection to it. */
export interface Sharing {
  isolation: Isolation
  /** Reached over the network: a link costs a session there, not a process here. */
  remote: boolean
  /** Seen asking with calls of several owners open, so that nobody could be asked. */
  contested: boolean
}

/** What of a client decides it. */
export interface Sharer { id: string, user: string, capabilities: ClientCapabilities }

/** Which link serves a client: equal keys share one. */
export interface LinkKey { key: string, affinity: Affinity, capabilityClass: string }

/** The link that serves the gateway itself: it lists, is pinged, and its state is the server's status. */
export const baseKey: LinkKey = { key: `shared ${plainClass}`, affinity: 'shared', capabilityClass: plainClass }

/**
 * Whom one upstream connection is for (DECISIONS §7, "Isolation"):
 * server × affinity × capability class. A pure function; the table in its test is the specification.
 */
export function linkKey (server: Sharing, client: Sharer): LinkKey {
  const capabilityClass = classOf(client.capabilities)
  const affinity = affinityOf(server, client)
  switch (affinity) {
    case 'shared': return { key: `shared ${capabilityClass}`, affinity, capabilityClass }
    case 'user': return { key: `user ${JSON.stringify(client.user)} ${capabilityClass}`, affinity, capabilityClass }
    case 'session': return { key: `session ${client.id}`, affinity, capabilityClass }
  }
}

function affinityOf (server: Sharing, client: Sharer): Affinity {
  if (server.isolation !== 'auto') return server.isolation
  if (!canBeAsked(client.capabilities)) return 'shared'
  return server.remote || server.contested ? 'session' : 'shared'
}
