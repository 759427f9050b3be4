import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { readFileSync } from 'node:fs'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Server as NetServer, Socket } from 'node:net'
import fp from 'fastify-plugin'
import { createTrustedProxyCheck } from '../config/index.ts'
import { ownerOfAddress, Shares } from './shares.ts'
import { TokenBucket } from './token-bucket.ts'
import { baseLimits } from './limits.ts'

declare module 'fastify' {
  interface FastifyInstance { connections: Connections }
}

/** The connections of one client address (for IPv6, of all addresses with the same first 64 bits). */
interface Peer {
  /** The address, as returned by `ownerOfAddress`. */
  readonly owner: string
  readonly isProxy: boolean
  held: number
  /** Connections without a running request, the longest idle first. */
  readonly idle: Set<Connection>
}

interface Connection { readonly socket: Socket, readonly peer: Peer, inFlight: number }

interface ConnectionsOptions {
  /** Max open connections. */
  readonly max: number
  /**
   * Whether an address is that of a trusted proxy. Proxies are not limited to a share, since all clients may connect
   * through one.
   */
  readonly isProxy: (address: string) => boolean
  readonly warn: (details: object, sentence: string) => void
  /** Called when a request arrives. */
  readonly onRequest: (request: IncomingMessage, response: ServerResponse) => void
}

/**
 * Limits the open connections of clients: a max for all, and a share for each address. At a limit, an idle connection
 * is closed to admit the new one. It is one of the same address if that address has used up its share; otherwise, one
 * of the address with the most connections. If there is no idle connection, the new one is closed. A connection with
 * too many pipelined requests is closed, too.
 */
class Connections {
  readonly #options: ConnectionsOptions
  readonly #shares: Shares
  readonly #connections = new Map<Socket, Connection>()
  readonly #peers = new Map<string, Peer>()
  /** Admits one log line of each kind per `logInterval`. */
  readonly #logLimit = new TokenBucket({ burst: 1, perSecond: 1_000 / baseLimits.connections.logInterval })
  #fromProxies = 0
  #closed = 0

  constructor (options: ConnectionsOptions) {
    this.#options = options
    this.#shares = new Shares(options.max, 'connections')
  }

  get open (): number { return this.#shares.taken + this.#fromProxies }

  /** The number of connections that were closed because too many were open; pipelining does not count. */
  get closed (): number { return this.#closed }

  /** Tracks the connections of an HTTP server and their requests. */
  watch (server: Server): void {
    server.on('connection', (socket) => { this.add(socket) })
    server.on('request', (request, response) => { this.#begin(request, response) })
    // For a request with an unknown `Expect` header, Node emits no `request` event.
    server.on('checkExpectation', (request, response) => {
      this.#begin(request, response)
      response.writeHead(417, { connection: 'close' }).end()
    })
  }

  /** Tracks a new connection, or closes it if a limit is reached. */
  add (socket: Socket): void {
    const { remoteAddress: address } = socket
    // Without an address, the client has already disconnected.
    if (this.#connections.has(socket) || address === undefined) return
    const owner = ownerOfAddress(address)
    const peer = this.#peers.get(owner) ?? { owner, isProxy: this.#options.isProxy(address), held: 0, idle: new Set() }
    if (!this.#makeRoom(peer, address)) {
      this.#closed++
      socket.destroy()
      return
    }
    const connection = { socket, peer, inFlight: 0 }
    this.#count(peer, 1)
    this.#connections.set(socket, connection)
    peer.idle.add(connection)
    socket.once('close', () => { this.#forget(connection) })
  }

  #begin (request: IncomingMessage, response: ServerResponse): void {
    this.#options.onRequest(request, response)
    const { socket } = request
    const connection = this.#connections.get(socket)
    if (!connection) return
    // With HTTP pipelining, a connection may have several running requests.
    if (connection.inFlight++ === 0) connection.peer.idle.delete(connection)
    if (connection.inFlight > baseLimits.arriving.requests) this.#closeCrowded(connection)
    response.once('close', () => {
      if (--connection.inFlight === 0 && this.#connections.has(socket)) connection.peer.idle.add(connection)
    })
  }

  #closeCrowded ({ socket, peer: { owner } }: Connection): void {
    this.#warn('crowded', { address: owner }, `a connection of ${owner} was closed, and further ones will be: it ` +
      `sent more than ${baseLimits.arriving.requests} requests without waiting for answers`)
    socket.destroy()
  }

  /** At a limit, closes an idle connection to make room for a new one. @returns false if there is no idle one */
  #makeRoom (peer: Peer, address: string): boolean {
    const bound = this.#boundFor(peer)
    if (bound === undefined) return true
    const [oldest] = (bound === 'share' ? peer : this.#largestIdle())?.idle ?? []
    const { open } = this
    this.#warn(bound, { address, open, closed: this.#closed }, bound === 'share'
      ? `${address} has ${peer.held} connections of ${open}, which is its share: its idle connections are closed to ` +
        'make room for new ones'
      : `${open} connections are open, which is the limit: idle ones are closed to make room for new ones; if the ` +
        'limit is too low, raise the limit of open files (ulimit -n, LimitNOFILE)')
    if (!oldest) return false
    this.#closed++
    this.#forget(oldest)
    oldest.socket.destroy()
    return true
  }

  /** The limit that one more connection of a peer would exceed: its share, or the max for all; undefined: neither. */
  #boundFor (peer: Peer): 'share' | 'all' | undefined {
    const { max } = this.#options
    if (peer.isProxy) return this.open < max ? undefined : 'all'
    const bound = this.#shares.exceededLimit(peer.owner, 1, this.#fromProxies)
    // At the global limit, a peer above its guaranteed tenth loses an idle connection of its own.
    return bound === 'all' && peer.held + 1 > max / 10 ? 'share' : bound
  }

  /** The peer with the most connections among those that have an idle one. */
  #largestIdle (): Peer | undefined {
    let largest: Peer | undefined
    for (const peer of this.#peers.values()) if (peer.idle.size > 0 && peer.held > (largest?.held ?? 0)) largest = peer
    return largest
  }

  #count (peer: Peer, change: 1 | -1): void {
    peer.held += change
    if (peer.isProxy) this.#fromProxies += change
    // `remove` with a negative number adds without a check, since `#makeRoom` has already checked.
    else this.#shares.remove(peer.owner, -change)
    if (peer.held > 0) this.#peers.set(peer.owner, peer)
    else this.#peers.delete(peer.owner)
  }

  #forget (connection: Connection): void {
    if (!this.#connections.delete(connection.socket)) return
    connection.peer.idle.delete(connection)
    this.#count(connection.peer, -1)
  }

  #warn (kind: string, details: object, sentence: string): void {
    if (this.#logLimit.take(kind)) this.#options.warn(details, sentence)
  }
}

/**
 * Returns the max number of open connections of a process, from its limit of open files.
 * @param processLimits the text of /proc/self/limits; undefined on systems without it
 */
export function maxConnectionsFrom (processLimits: string | undefined): number {
  const { most, elsewhere, reserve } = baseLimits.connections
  if (processLimits === undefined) return elsewhere
  // "Max open files 1024 1048576 files": the soft limit, then the hard one.
  const files = Number(/^Max open files +(\d+)/m.exec(processLimits)?.[1] ?? Infinity)
  return Math.min(most, Math.floor(Math.max(files / 2, Math.min(files * 3 / 4, files - reserve))))
}

function readProcessLimits (): string | undefined {
  try {
    return readFileSync('/proc/self/limits', 'latin1')
  } catch {
    return undefined
  }
}

interface ConnectionsPluginOptions extends Pick<ConnectionsOptions, 'onRequest'> {
  trustProxy: string
  /** Max open connections; default: derived from the limit of open files. */
  max?: number
}

/** Decorates the app with `connections`, which limits the connections of all servers of the app. */
export default fp<ConnectionsPluginOptions>(async (
  app, { trustProxy, max = maxConnectionsFrom(readProcessLimits()), onRequest }
) => {
  const warn: ConnectionsOptions['warn'] = (details, text) => { app.log.warn(details, text) }
  const connections = new Connections({ max, isProxy: createTrustedProxyCheck(trustProxy), warn, onRequest })
  const watched = new WeakSet<NetServer>([app.server])
  connections.watch(app.server)
  // To listen on "localhost", Fastify creates a second server for the other address family, with the same handler.
  const [handler] = app.server.listeners('request')
  const onSocket = (message: unknown): void => {
    const { socket } = message as { socket: Socket & { server?: Server } }
    const { server } = socket
    if (server === undefined || watched.has(server) || !server.listeners('request').some((each) => each === handler)) {
      return
    }
    watched.add(server)
    connections.watch(server)
    connections.add(socket)
  }
  subscribe('net.server.socket', onSocket)
  app.decorate('connections', connections)
  app.addHook('onClose', async () => { unsubscribe('net.server.socket', onSocket) })
}, { name: 'connections' })
