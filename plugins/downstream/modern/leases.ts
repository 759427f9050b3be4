import type { ClientCapabilities } from '../../../protocol/capabilities.ts'
import { code, RpcError } from '../../../protocol/errors.ts'
import type { Client, Exchange, Question } from '../../../protocol/exchange.ts'
import type { Level, Listener } from '../../../protocol/listener.ts'
import type { Response } from '../../../protocol/message.ts'
import { memoryOf } from '../../../protocol/text.ts'
import { ownerOf, type View } from '../../settings/index.ts'
import { limits, ShareError, Shares } from '../../base/limits/index.ts'

let last = 0

/**
 * The client of one modern request at a time: a *lease*. Later requests of the same principal, route and capabilities take it again, and
 * with it the links that upstreams have for it; two requests at a time never share one.
 */
export class ModernClient implements Client, Listener<View> {
  readonly id = `modern ${++last}`
  readonly view: View
  readonly capabilities: ClientCapabilities
  /** The lowest level of log messages that its requests want; undefined: they want none. */
  readonly level: Level | undefined
  readonly owner: string
  /** The request that holds it. */
  exchange: Exchange<View> | undefined
  /** Since when no request holds it, in ms since the epoch. */
  idleSince = Date.now()
  /** True: it ends when it is given back. */
  isDropped = false
  /** How many subscriptions use its links: with any, it stays. */
  holders = 0
  /** True: it counts as an idle client of its owner. */
  isCounted = false
  readonly pool: Pool

  constructor (pool: Pool, view: View, capabilities: ClientCapabilities, level: Level | undefined, owner: string) {
    this.pool = pool
    this.view = view
    this.capabilities = capabilities
    this.level = level
    this.owner = owner
  }

  get user (): string { return this.view.principal.user }
  get principal (): string { return this.view.principal.key }
  get listener (): Listener<View> { return this }

  /** What belongs to no request is for `subscriptions/listen`. */
  deliver (): void {}

  /** A question that a server relates to no request is put on the request that is under way. */
  async ask (question: Question): Promise<Response> {
    if (!this.exchange) throw new RpcError(code.internal, 'The client can be asked during a request only', 'internal')
    return await this.exchange.ask(question)
  }
}

/** What the clients of some requests have in common, and all of them that there are. */
interface Pool {
  readonly key: string
  /** They may be kept while no request holds them. */
  readonly isKept: boolean
  readonly clients: ModernClient[]
  readonly free: ModernClient[]
}

interface LeasesDeps {
  /** A client begins: news and withdrawn access concern it from now on. */
  began: (client: ModernClient) => void
  /** A client has ended: its links can go. */
  ended: (client: ModernClient) => void
}

/** Which client a modern request is of. Clients that no request holds are kept for a while, since links hang on them. */
export class Leases {
  readonly #pools = new Map<string, Pool>()
  /** The pool that was used last, and by what: the next request is often of the same client. */
  #last: { readonly view: View, readonly address: string, readonly text: string, readonly level: Level | undefined, pool: Pool } | undefined
  readonly #deps: LeasesDeps
  readonly #sweeper: NodeJS.Timeout
  readonly #idle = new Shares(limits.leases.idle, 'idle clients')

  constructor (deps: LeasesDeps) {
    this.#deps = deps
    this.#sweeper = setInterval(() => { this.#sweep() }, limits.leases.time / 5).unref()
  }

  /** How many clients there are that no request holds. */
  get idle (): number { return this.#idle.taken }

  /** A client that no other request holds. Give it back. */
  take (view: View, address: string, capabilities: ClientCapabilities, text: string, level: Level | undefined): ModernClient {
    const pool = this.#pool(view, address, text, level)
    // Best the first one: what is listed is what its links list, and subscriptions hear what changes there.
    const [first] = pool.clients
    const at = first ? pool.free.lastIndexOf(first) : -1
    const client = at === -1 ? pool.free.pop() : pool.free.splice(at, 1)[0]
    if (!client) return this.#begin(pool, view, address, capabilities, level)
    this.#uncount(client)
    return client
  }

  /** The client for a request that is not sent to any server: always the first one, so that lists never depend on what else runs. */
  first (view: View, address: string, capabilities: ClientCapabilities, text: string, level: Level | undefined): ModernClient {
    const pool = this.#pool(view, address, text, level)
    const client = pool.clients[0]
    if (client) {
      client.idleSince = Date.now()
      return client
    }
    const made = this.#begin(pool, view, address, capabilities, level)
    this.#free(pool, made)
    return made
  }

  /** The same client, for a subscription that uses its links. It stays until it is released. */
  hold (view: View, address: string, capabilities: ClientCapabilities, text: string, level: Level | undefined): ModernClient {
    const pool = this.#pool(view, address, text, level)
    const [known] = pool.clients
    const client = known ?? this.#begin(pool, view, address, capabilities, level)
    client.holders++
    if (!known) this.#free(pool, client)
    return client
  }

  /** Takes back what `hold` returned. */
  release (client: ModernClient): void {
    const { pool } = client
    client.holders--
    const at = pool.free.indexOf(client)
    if (client.holders > 0 || client.isCounted || at === -1) return
    pool.free.splice(at, 1)
    this.#free(pool, client)
  }

  /** Takes a client back. */
  give (client: ModernClient): void {
    client.exchange = undefined
    if (client.isDropped) this.#deps.ended(client)
    else this.#free(client.pool, client)
  }

  /** Ends the clients whose view does not stand any more. Those that a request holds end as they are given back. */
  revoke (stands: (view: View) => boolean): void {
    for (const pool of [...this.#pools.values()]) {
      const [client] = pool.clients
      if (client && !stands(client.view)) this.#drop(pool, pool.clients)
    }
  }

  close (): void {
    clearInterval(this.#sweeper)
    for (const pool of [...this.#pools.values()]) this.#drop(pool, pool.clients)
  }

  #pool (view: View, address: string, text: string, level: Level | undefined): Pool {
    const last = this.#last
    if (last?.view === view && last.address === address && last.level === level && last.text === text) return last.pool
    const key = keyOf(view, address, text, level)
    let pool = this.#pools.get(key)
    if (!pool) this.#pools.set(key, pool = { key, isKept: memoryOf(key) <= limits.leases.key, clients: [], free: [] })
    // A larger text would keep what it is a part of.
    if (pool.isKept) this.#last = { view, address, text, level, pool }
    return pool
  }

  #begin (pool: Pool, view: View, address: string, capabilities: ClientCapabilities, level: Level | undefined): ModernClient {
    const client = new ModernClient(pool, view, capabilities, level, ownerOf(view.principal, address))
    pool.clients.push(client)
    this.#deps.began(client)
    return client
  }

  #free (pool: Pool, client: ModernClient): void {
    client.idleSince = Date.now()
    // What a stranger declares may be large, and another thing each time.
    if (client.holders > 0 || (pool.isKept && this.#hasPlace(client))) {
      pool.free.push(client)
      return
    }
    this.#drop(pool, [client])
    this.#deps.ended(client)
  }

  /** Takes a place for an idle client; false: there is none, or its owner has had his share. */
  #hasPlace (client: ModernClient): boolean {
    try {
      this.#idle.add(client.owner, 1)
      client.isCounted = true
      return true
    } catch (error) {
      if (error instanceof ShareError) return false
      throw error
    }
  }

  #uncount (client: ModernClient): void {
    if (client.isCounted) this.#idle.remove(client.owner, 1)
    client.isCounted = false
  }

  #sweep (): void {
    const before = Date.now() - limits.leases.time
    for (const pool of [...this.#pools.values()]) {
      this.#drop(pool, pool.free.filter(({ holders, idleSince }) => holders === 0 && idleSince < before))
    }
  }

  #drop (pool: Pool, gone: readonly ModernClient[]): void {
    for (const client of [...gone]) {
      client.isDropped = true
      pool.clients.splice(pool.clients.indexOf(client), 1)
      const at = pool.free.indexOf(client)
      if (at === -1) continue
      pool.free.splice(at, 1)
      this.#uncount(client)
      this.#deps.ended(client)
    }
    if (pool.clients.length > 0) return
    this.#pools.delete(pool.key)
    if (this.#last?.pool === pool) this.#last = undefined
  }
}

const keyOf = ({ principal, key }: View, address: string, text: string, level: Level | undefined): string =>
  `${principal.key}\n${principal.kind === 'anonymous' || principal.kind === 'guest' ? address : ''}\n${key}\n${level ?? ''}\n${text}`
