import { canBeAsked, classOf, plainClass, type ClientCapabilities } from '../../../protocol/capabilities.ts'

export type Isolation = 'auto' | 'shared' | 'session' | 'user'
export type Affinity = 'shared' | 'session' | 'user'

/** What of a server decides who shares a connection to it. */
export interface Sharing {
  isolation: Isolation
  /** VisibleServer over the network: a link costs a session there, not a process here. */
  remote: boolean
  /** Seen asking with calls of several owners open, so that nobody could be asked. */
  contested: boolean
}

/** What of a client decides it. */
export interface Sharer {
  id: string
  user: string
  capabilities: ClientCapabilities
  /** It asked for connections of its own. */ alone?: boolean
}

/** What of a client's own headers goes on to a server that is passed some on. */
export interface Passing {
  /** Tells principals apart: no two of them share. */
  principal: string
  /** Tells sets of values apart, without telling the values. */
  digest: string
  /** The client is one session, whose every request is its own; the name of a REST caller may stand for many people. */
  session: boolean
  /** A connection takes other values with each request (streamable HTTP), not only when it is opened (SSE). */
  eachRequest: boolean
}

/** Which link serves a client: equal keys share one. */
export interface LinkKey { key: string, affinity: Affinity, capabilityClass: string }

/** The link that serves the gateway itself: it lists, is pinged, and its state is the server's status. */
export const baseKey: LinkKey = { key: `shared ${plainClass}`, affinity: 'shared', capabilityClass: plainClass }

/** The link by which a server that is passed headers on is asked what it lists to a class of clients: nobody's headers go there. */
export const listingKey = (base: LinkKey, capabilityClass: string): LinkKey =>
  capabilityClass === base.capabilityClass ? base : { key: `listing ${capabilityClass}`, affinity: 'shared', capabilityClass }

/**
 * Whom one upstream connection is for (DECISIONS §7, "Isolation"; §15, "passthroughHeaders"):
 * server × affinity × capability class × passed-on headers. A pure function; the table in its test is the specification.
 * @param passing undefined: none of its headers go on
 */
export function linkKey (server: Sharing, client: Sharer, passing?: Passing): LinkKey {
  const capabilityClass = classOf(client.capabilities)
  const affinity = affinityOf(server, client)
  // What carries a principal's headers is for that principal alone; a session's own link follows the values that its requests bring.
  if (passing && affinity !== 'session') {
    return {
      key: `passing ${JSON.stringify([affinity, client.user, passing.principal, passing.digest])} ${capabilityClass}`,
      affinity: 'user',
      capabilityClass
    }
  }
  if (passing && !(passing.session && passing.eachRequest)) {
    return { key: `passing session ${JSON.stringify([client.id, passing.digest])}`, affinity, capabilityClass }
  }
  switch (affinity) {
    case 'shared': return { key: `shared ${capabilityClass}`, affinity, capabilityClass }
    case 'user': return { key: `user ${JSON.stringify(client.user)} ${capabilityClass}`, affinity, capabilityClass }
    case 'session': return { key: `session ${client.id}`, affinity, capabilityClass }
  }
}

function affinityOf (server: Sharing, client: Sharer): Affinity {
  if (client.alone === true) return 'session'
  if (server.isolation !== 'auto') return server.isolation
  if (!canBeAsked(client.capabilities)) return 'shared'
  return server.remote || server.contested ? 'session' : 'shared'
}
