import type { ClientCapabilities } from '../../../protocol/capabilities.ts'
import { rpcCode, RpcError } from '../../../protocol/errors.ts'
import type { Client, Exchange, Question } from '../../../protocol/exchange.ts'
import type { LogLevel, Listener } from '../../../protocol/listener.ts'
import type { Response } from '../../../protocol/message.ts'
import { memoryOf } from '../../../protocol/text.ts'
import { chargedOwnerOf, hasCredential, type View } from '../../settings/index.ts'
import { Shares } from '../../base/limits/index.ts'
import { downstreamLimits } from '../limits.ts'

let lastClientNumber = 0

/**
 * A client that stands for the sender of a modern request while the request runs (a *lease*). Later requests of the
 * same principal, route, capabilities and log level reuse it with its upstream links. Requests that go to servers do
 * not share a client at the same time.
 */
export class ModernClient implements Client, Listener<View> {
  readonly id = `modern ${++lastClientNumber}`
  readonly view: View
  readonly capabilities: ClientCapabilities
  /** The least severe level of log messages for its requests; undefined if it gets no log messages. */
  readonly level: LogLevel | undefined
  readonly hasLevelInRequests = true
  readonly owner: string
  /** The request that currently uses the client. */
  exchange: Exchange<View> | undefined
  /** The time since which no request has used the client, in ms since 1970. */
  idleSince = Date.now()
  /** Whether the client ends when it is given back. */
  isDropped = false
  /** The number of subscriptions that use its links. While there is one, the client is kept. */
  holders = 0
  /** Whether the client counts against its owner's share of idle clients. */
  isCounted = false
  readonly pool: LeasePool

  constructor (
    pool: LeasePool, view: View, capabilities: ClientCapabilities, level: LogLevel | undefined, owner: string
  ) {
    this.pool = pool
    this.view = view
    this.capabilities = capabilities
    this.level = level
    this.owner = owner
  }

  get user (): string { return this.view.principal.user }
  get principalKey (): string { return this.view.principal.key }
  get listener (): Listener<View> { return this }

  /** Does nothing: messages without a request go to `subscriptions/listen`. */
  deliver (): void {}

  /** Sends a question that belongs to no request as part of the current request. */
  async ask (question: Question): Promise<Response> {
    if (!this.exchange) {
      throw new RpcError(rpcCode.internal, 'The client can receive requests only during its own requests', 'internal')
    }
    return await this.exchange.ask(question)
  }
}

/** All clients of the same principal (or address, if anonymous), route, capabilities and log level. */
interface LeasePool {
  readonly key: string
  /** Whether idle clients are kept. */
  readonly keepsIdle: boolean
  readonly clients: ModernClient[]
  /** The clients that no request uses. */
  readonly free: ModernClient[]
}

interface LeasesDeps {
  /** Called when a client is created. From then on, the client must be notified of changes and of lost access. */
  onBegin: (client: ModernClient) => void
  /** Called when a client has ended and its links can be closed. */
  onEnd: (client: ModernClient) => void
}

/** Assigns clients to modern requests. Idle clients are kept for a while, since they own upstream links. */
export class ModernClientPool {
  readonly #pools = new Map<string, LeasePool>()
  readonly #deps: LeasesDeps
  readonly #sweeper: NodeJS.Timeout
  readonly #idle = new Shares(downstreamLimits.leases.idle, 'idle clients')

  constructor (deps: LeasesDeps) {
    this.#deps = deps
    this.#sweeper = setInterval(() => { this.#sweep() }, downstreamLimits.leases.time / 5).unref()
  }

  /** The number of idle clients that count against `downstreamLimits.leases.idle`. */
  get idle (): number { return this.#idle.taken }

  /** Returns a client that no other request uses. The caller must hand it to `giveBack` when the request has ended. */
  acquire (
    view: View, address: string, capabilities: ClientCapabilities, capabilitiesText: string,
    level: LogLevel | undefined
  ): ModernClient {
    const pool = this.#poolOf(view, address, capabilitiesText, level)
    // The first client is preferred, since lists and subscriptions use its links.
    const [first] = pool.clients
    const at = first ? pool.free.lastIndexOf(first) : -1
    const client = at === -1 ? pool.free.pop() : pool.free.splice(at, 1)[0]
    if (!client) return this.#begin(pool, view, address, capabilities, level)
    this.#uncount(client)
    return client
  }

  /**
   * Returns the client for a request that goes to no server. It is always the first of its pool, so that lists do not
   * depend on concurrent requests. It need not be given back.
   */
  first (
    view: View, address: string, capabilities: ClientCapabilities, capabilitiesText: string,
    level: LogLevel | undefined
  ): ModernClient {
    const pool = this.#poolOf(view, address, capabilitiesText, level)
    const client = pool.clients[0]
    if (client) {
      client.idleSince = Date.now()
      return client
    }
    const made = this.#begin(pool, view, address, capabilities, level)
    this.#setIdle(pool, made)
    return made
  }

  /** Returns the first client of a pool, for a subscription that uses its links. It is kept until `release`. */
  hold (
    view: View, address: string, capabilities: ClientCapabilities, capabilitiesText: string,
    level: LogLevel | undefined
  ): ModernClient {
    const pool = this.#poolOf(view, address, capabilitiesText, level)
    const [known] = pool.clients
    const client = known ?? this.#begin(pool, view, address, capabilities, level)
    client.holders++
    if (!known) this.#setIdle(pool, client)
    return client
  }

  /** Releases a client that `hold` returned. Once no subscription holds it, it becomes idle, or ends. */
  release (client: ModernClient): void {
    const { pool } = client
    client.holders--
    const at = pool.free.indexOf(client)
    if (client.holders > 0 || client.isCounted || at === -1) return
    pool.free.splice(at, 1)
    this.#setIdle(pool, client)
  }

  /** Takes back a client that `acquire` returned: keeps it as an idle client, or ends it. */
  giveBack (client: ModernClient): void {
    client.exchange = undefined
    if (client.isDropped) this.#deps.onEnd(client)
    else this.#setIdle(client.pool, client)
  }

  /** Ends the clients whose views have lost access. Clients in use end when they are given back. */
  revoke (hasAccess: (view: View) => boolean): void {
    for (const pool of [...this.#pools.values()]) {
      const [client] = pool.clients
      if (client && !hasAccess(client.view)) this.#drop(pool, pool.clients)
    }
  }

  close (): void {
    clearInterval(this.#sweeper)
    for (const pool of [...this.#pools.values()]) this.#drop(pool, pool.clients)
  }

  #poolOf (view: View, address: string, capabilitiesText: string, level: LogLevel | undefined): LeasePool {
    const key = keyOf(view, address, capabilitiesText, level)
    let pool = this.#pools.get(key)
    if (!pool) {
      this.#pools.set(
        key, pool = { key, keepsIdle: memoryOf(key) <= downstreamLimits.leases.key, clients: [], free: [] }
      )
    }
    return pool
  }

  #begin (
    pool: LeasePool, view: View, address: string, capabilities: ClientCapabilities, level: LogLevel | undefined
  ): ModernClient {
    const client = new ModernClient(pool, view, capabilities, level, chargedOwnerOf(view.principal, address))
    // This may throw: the pool would keep a client that no request gives back.
    this.#deps.onBegin(client)
    pool.clients.push(client)
    return client
  }

  /** Keeps a client that no request uses, or ends it if there is no place for it. */
  #setIdle (pool: LeasePool, client: ModernClient): void {
    client.idleSince = Date.now()
    // Clients with large capabilities are not kept: a caller could declare different ones each time.
    if (client.holders > 0 || (pool.keepsIdle && this.#reservePlace(client))) {
      pool.free.push(client)
      return
    }
    this.#drop(pool, [client])
    this.#deps.onEnd(client)
  }

  /** Reserves a place for an idle client. @returns false if no place is free, or the owner has used up its share */
  #reservePlace (client: ModernClient): boolean {
    client.isCounted = this.#idle.tryAdd(client.owner, 1)
    return client.isCounted
  }

  #uncount (client: ModernClient): void {
    if (client.isCounted) this.#idle.remove(client.owner, 1)
    client.isCounted = false
  }

  #sweep (): void {
    const before = Date.now() - downstreamLimits.leases.time
    for (const pool of [...this.#pools.values()]) {
      this.#drop(pool, pool.free.filter(({ holders, idleSince }) => holders === 0 && idleSince < before))
    }
  }

  #drop (pool: LeasePool, gone: readonly ModernClient[]): void {
    for (const client of [...gone]) {
      client.isDropped = true
      pool.clients.splice(pool.clients.indexOf(client), 1)
      const at = pool.free.indexOf(client)
      if (at === -1) continue
      pool.free.splice(at, 1)
      this.#uncount(client)
      this.#deps.onEnd(client)
    }
    if (pool.clients.length === 0) this.#pools.delete(pool.key)
  }
}

const keyOf = (
  { principal, key }: View, address: string, capabilitiesText: string, level: LogLevel | undefined
): string =>
  `${principal.key}\n${hasCredential(principal) ? '' : address}\n${key}\n${level ?? ''}\n${capabilitiesText}`
