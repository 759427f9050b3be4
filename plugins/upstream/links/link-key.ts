import {
  acceptsQuestions, capabilityClassOf, emptyCapabilityClass, type ClientCapabilities
} from '../../../protocol/capabilities.ts'

export type Isolation = 'auto' | 'shared' | 'session' | 'user'
type Affinity = 'shared' | 'session' | 'user'

/** The properties of a server that determine which of its clients share a connection. */
interface SharingPolicy {
  isolation: Isolation
  /** Whether the server has sessions and is reached over the network, so that a link needs no local process. */
  remote: boolean
  /** Whether the server sent a question while calls of several clients were open, so that its recipient was unknown. */
  contested: boolean
}

/** The properties of a client that determine which link serves it. */
export interface LinkClient {
  id: string
  user: string
  capabilities: ClientCapabilities
  hasOwnLinks?: boolean
  /** Another client whose links this client uses; undefined if it has its own. */
  linkOwner?: { id: string }
}

/** The properties of a client's passed-on headers that determine which link carries them. */
interface PassedHeaderTraits {
  /** The client's principal: a link with passed-on headers is not shared between principals. */
  principal: string
  /** A hash of the header values. */
  digest: string
  /** Whether the client is a single MCP session, rather than a REST caller, whose id may stand for many people. */
  session: boolean
  /**
   * Whether a connection accepts other header values with each request (streamable HTTP), not only on opening (SSE).
   */
  eachRequest: boolean
}

/** Identifies the link that serves a client: clients with equal keys share a link. */
export interface LinkKey { key: string, affinity: Affinity, capabilityClass: string }

/** The key of the gateway's own link, which reads the lists and is pinged. Its state is the server's status. */
export const gatewayLinkKey: LinkKey = {
  key: `shared ${emptyCapabilityClass}`, affinity: 'shared', capabilityClass: emptyCapabilityClass
}

/**
 * Returns the key of the link that reads the lists for a capability class if clients' headers are passed on to the
 * server. This link carries no headers of clients.
 */
export const listingKey = (base: LinkKey, capabilityClass: string): LinkKey =>
  capabilityClass === base.capabilityClass
    ? base
    : { key: `listing ${capabilityClass}`, affinity: 'shared', capabilityClass }

/**
 * Returns the key of the link that serves a client. It depends on whether the link serves all clients, one user or one
 * session (the affinity), on the client's capability class, and on the headers that are passed on.
 * @param passing the client's passed-on headers; undefined if there are none
 */
export function linkKey (server: SharingPolicy, client: LinkClient, passing?: PassedHeaderTraits): LinkKey {
  const capabilityClass = capabilityClassOf(client.capabilities)
  const affinity = affinityOf(server, client)
  const { id } = client.linkOwner ?? client
  // A link with headers serves only the principal that sent them. The link of a single session can take the headers
  // from each request.
  if (passing && affinity !== 'session') {
    return {
      key: `passing ${JSON.stringify([affinity, client.user, passing.principal, passing.digest])} ${capabilityClass}`,
      affinity: 'user',
      capabilityClass
    }
  }
  if (passing && !(passing.session && passing.eachRequest)) {
    return { key: `passing session ${JSON.stringify([id, passing.digest])}`, affinity, capabilityClass }
  }
  switch (affinity) {
    case 'shared': return { key: `shared ${capabilityClass}`, affinity, capabilityClass }
    case 'user': return { key: `user ${JSON.stringify(client.user)} ${capabilityClass}`, affinity, capabilityClass }
    case 'session': return { key: `session ${id}`, affinity, capabilityClass }
  }
}

function affinityOf (server: SharingPolicy, client: LinkClient): Affinity {
  if (client.hasOwnLinks === true) return 'session'
  if (server.isolation !== 'auto') return server.isolation
  if (!acceptsQuestions(client.capabilities)) return 'shared'
  return server.remote || server.contested ? 'session' : 'shared'
}
