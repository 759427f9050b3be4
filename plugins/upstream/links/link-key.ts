import {
  acceptsQuestions, capabilityClassOf, emptyCapabilityClass, type ClientCapabilities
} from '../../../protocol/capabilities.ts'

export type Isolation = 'auto' | 'shared' | 'session' | 'user'
type Affinity = 'shared' | 'session' | 'user'

/** The properties of a server that determine which clients share a connection. */
interface SharingPolicy {
  isolation: Isolation
  /** Whether it is reached over the network: a link then costs a session on the server, but no local process. */
  remote: boolean
  /** Whether it sent a question while calls of several clients were open, so that the recipient was unknown. */
  contested: boolean
}

/** The properties of a client that determine the link which serves it. */
export interface LinkClient {
  id: string
  user: string
  capabilities: ClientCapabilities
  hasOwnLinks?: boolean
  /** The client whose links this client uses, if not its own. */
  linkOwner?: { id: string }
}

/** The headers of a client that are passed on to a server. */
interface PassedHeaderTraits {
  /** The principal: no two principals share a link. */
  principal: string
  /** Identifies the values without revealing them. */
  digest: string
  /** Whether the client is a single session. The identity of a REST caller may stand for many people. */
  session: boolean
  /**
   * Whether a connection accepts other header values with each request (streamable HTTP), not only on opening (SSE).
   */
  eachRequest: boolean
}

/** Identifies the link that serves a client: clients with equal keys share a link. */
export interface LinkKey { key: string, affinity: Affinity, capabilityClass: string }

/** The key of the gateway's link, which reads the lists and is pinged, and whose state is the server's status. */
export const baseKey: LinkKey = {
  key: `shared ${emptyCapabilityClass}`, affinity: 'shared', capabilityClass: emptyCapabilityClass
}

/**
 * The key of the link that reads lists for a capability class when headers are passed on. It carries no client's
 * headers.
 */
export const listingKey = (base: LinkKey, capabilityClass: string): LinkKey =>
  capabilityClass === base.capabilityClass
    ? base
    : { key: `listing ${capabilityClass}`, affinity: 'shared', capabilityClass }

/**
 * The key of the link that serves a client: affinity × capability class × passed-on headers. A pure function, specified
 * by the table in its test.
 * @param passing undefined if no headers are passed on
 */
export function linkKey (server: SharingPolicy, client: LinkClient, passing?: PassedHeaderTraits): LinkKey {
  const capabilityClass = capabilityClassOf(client.capabilities)
  const affinity = affinityOf(server, client)
  const { id } = client.linkOwner ?? client
  // A link that carries headers serves their principal only; the link of a single session uses the values of each
  // request.
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
