import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { readFileSync } from 'node:fs'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Server as NetServer, Socket } from 'node:net'
import fp from 'fastify-plugin'
import { trustsPeer } from '../config/index.ts'
import { closeCrowded, wasCrowded } from './client-message.ts'
import { limits } from './limits.ts'
import { ownerAt } from './owner.ts'
import { ShareError, Shares } from './shares.ts'

declare module 'fastify' {
  interface FastifyInstance { connections: Connections }
}

/** An address (of IPv6 its first 64 bits) that connections come from. */
interface Peer {
  readonly owner: string
  readonly isProxy: boolean
  held: number
  /** Its connections without a request in flight; those that have been so for longest come first. */
  readonly idle: Set<Connection>
}

interface Connection { readonly socket: Socket, readonly peer: Peer, inFlight: number }

interface ConnectionsOptions {
  /** Max open connections. */
  readonly max: number
  /** Whether an address is that of a trusted proxy: it has no share of its own, since everybody comes by it. */
  readonly isProxy: (address: string) => boolean
  readonly warn: (details: object, sentence: string) => void
  /** Called for each request as it arrives. */
  readonly arrives?: (request: IncomingMessage, response: ServerResponse) => void
  /** In ms since the epoch. */
  readonly now?: () => number
}

/**
 * The open connections of clients, with a bound for all and a share for each address. When a bound is reached, an idle connection (one
 * without a request in flight) is closed for the new one: one of the same address when that address has used up its share, or one of the
 * address with most connections when the bound for all is reached. Without an idle connection, the new one is closed. One with too many
 * requests in flight is closed as well.
 */
class Connections {
  readonly #options: ConnectionsOptions
  readonly #shares: Shares
  readonly #now: () => number
  readonly #connections = new Map<Socket, Connection>()
  readonly #peers = new Map<string, Peer>()
  #ofProxies = 0
  #closed = 0
  /** Those that were closed before the last line in the log. */
  #told = 0
  #toldAt = -Infinity
  #crowdedToldAt = -Infinity

  constructor (options: ConnectionsOptions) {
    this.#options = options
    this.#shares = new Shares(options.max, 'connections')
    this.#now = options.now ?? Date.now
  }

  /** How many are open. */
  get open (): number { return this.#shares.taken + this.#ofProxies }

  /** How many were closed to make room, or for want of it. */
  get closed (): number { return this.#closed }

  /** Counts the connections of an HTTP server, and their requests. */
  watch (server: Server): void {
    server.on('connection', (socket) => { this.add(socket) })
    server.on('request', (request, response) => { this.#begin(request, response) })
    // Node would answer it without telling anybody.
    server.on('checkExpectation', (request, response) => {
      this.#begin(request, response)
      response.writeHead(417, { connection: 'close' }).end()
    })
  }

  /** Counts a new connection, or closes it at once. */
  add (socket: Socket): void {
    if (this.#connections.has(socket)) return
    const { remoteAddress: address } = socket
    // Its client has gone already.
    if (address === undefined) return
    const peer = this.#peerAt(address)
    if (!this.#makeRoom(peer, address)) {
      this.#closed++
      socket.destroy()
      return
    }
    const connection = { socket, peer, inFlight: 0 }
    this.#count(peer, 1)
    this.#connections.set(socket, connection)
    peer.idle.add(connection)
    socket.once('close', () => {
      this.#forget(connection)
      if (wasCrowded(socket)) this.#tellCrowded(peer)
    })
  }

  #begin (request: IncomingMessage, response: ServerResponse): void {
    this.#options.arrives?.(request, response)
    const { socket } = request
    const connection = this.#connections.get(socket)
    if (!connection) return
    // A client may send several requests before it reads.
    if (connection.inFlight++ === 0) connection.peer.idle.delete(connection)
    if (connection.inFlight > limits.arriving.requests) closeCrowded(socket)
    response.once('close', () => {
      if (--connection.inFlight === 0 && this.#connections.has(socket)) connection.peer.idle.add(connection)
    })
  }

  #peerAt (address: string): Peer {
    const owner = ownerAt(address)
    return this.#peers.get(owner) ?? { owner, isProxy: this.#options.isProxy(address), held: 0, idle: new Set() }
  }

  /** @returns false: there is no room, and no idle connection that could be closed for it */
  #makeRoom (peer: Peer, address: string): boolean {
    const lack = this.#lack(peer)
    if (lack === undefined) return true
    const [oldest] = (lack === 'share' ? peer : this.#largest())?.idle ?? []
    this.#tell(lack, peer, address)
    if (!oldest) return false
    this.#closed++
    this.#forget(oldest)
    oldest.socket.destroy()
    return true
  }

  /** What one more connection of an address would exceed: its share, or the bound for all. */
  #lack (peer: Peer): 'share' | 'bound' | undefined {
    if (peer.isProxy) return this.open < this.#options.max ? undefined : 'bound'
    try {
      this.#shares.take(peer.owner, 1, this.#ofProxies)()
      return undefined
    } catch (error) {
      if (!(error instanceof ShareError)) throw error
      // Who has more than others are sure of makes room by itself, also where no place is left at all.
      return error.isOwners || peer.held + 1 > this.#options.max / 10 ? 'share' : 'bound'
    }
  }

  /** The address that holds most, of those that have an idle connection. */
  #largest (): Peer | undefined {
    let largest: Peer | undefined
    for (const peer of this.#peers.values()) if (peer.idle.size > 0 && peer.held > (largest?.held ?? 0)) largest = peer
    return largest
  }

  #count (peer: Peer, places: number): void {
    peer.held += places
    if (peer.isProxy) this.#ofProxies += places
    else this.#shares.remove(peer.owner, -places)
    if (peer.held > 0) this.#peers.set(peer.owner, peer)
    else this.#peers.delete(peer.owner)
  }

  #forget (connection: Connection): void {
    if (!this.#connections.delete(connection.socket)) return
    connection.peer.idle.delete(connection)
    this.#count(connection.peer, -1)
  }

  /** Tells the log that a connection was closed for its many requests, at most once a minute. */
  #tellCrowded ({ owner }: Peer): void {
    const now = this.#now()
    if (now - this.#crowdedToldAt < limits.connections.logInterval) return
    this.#crowdedToldAt = now
    this.#options.warn({ address: owner }, `a connection of ${owner} was closed, and further ones are: it sent more than ` +
      `${limits.arriving.requests} requests without waiting for answers`)
  }

  /** Tells the log, at most once a minute. */
  #tell (lack: 'share' | 'bound', peer: Peer, address: string): void {
    const now = this.#now()
    if (now - this.#toldAt < limits.connections.logInterval) return
    const details = { address, open: this.open, closed: this.#closed - this.#told }
    this.#toldAt = now
    this.#told = this.#closed
    this.#options.warn(details, lack === 'share'
      ? `${address} has ${peer.held} connections of ${this.open}, its share: for new ones, its idle ones are closed`
      : `${this.open} connections are open, which is the bound: for new ones, idle ones are closed; where that is too few, raise the ` +
        'limit of open files (ulimit -n, LimitNOFILE)')
  }
}

/**
 * Max open connections of a process.
 * @param processLimits the text of /proc/self/limits; undefined: the system has none
 */
export function mostConnections (processLimits: string | undefined): number {
  const { most, elsewhere, reserve } = limits.connections
  if (processLimits === undefined) return elsewhere
  // "Max open files            1024                 1048576              files": the soft limit, then the hard one.
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

interface ConnectionsPluginOptions {
  /** TRUST_PROXY. */
  trustProxy: string
  /** Max open connections, in place of the bound that comes from the limit of open files. */
  max?: number
  arrives: ConnectionsOptions['arrives']
}

/** `app.connections`: bounds the connections of all servers of the app. */
export default fp<ConnectionsPluginOptions>(async (app, { trustProxy, max = mostConnections(readProcessLimits()), arrives }) => {
  const warn: ConnectionsOptions['warn'] = (details, text) => { app.log.warn(details, text) }
  const connections = new Connections({ max, isProxy: trustsPeer(trustProxy), warn, arrives })
  const watched = new WeakSet<NetServer>([app.server])
  connections.watch(app.server)
  // For "localhost" Fastify makes a second server, for the other kind of addresses, and tells nobody: it has the same handler of requests.
  const [handler] = app.server.listeners('request')
  const onSocket = (message: unknown): void => {
    const { socket } = message as { socket: Socket & { server?: Server } }
    const { server } = socket
    if (server === undefined || watched.has(server) || !server.listeners('request').some((each) => each === handler)) return
    watched.add(server)
    connections.watch(server)
    connections.add(socket)
  }
  subscribe('net.server.socket', onSocket)
  app.decorate('connections', connections)
  app.addHook('onClose', async () => { unsubscribe('net.server.socket', onSocket) })
}, { name: 'connections' })
