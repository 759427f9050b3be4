import { isUsable, type CatalogueCache, type Server } from '../../db/store.ts'
import type { Client } from '../../protocol/exchange.ts'
import type { Catalogue } from '../../protocol/lists.ts'
import { code, RpcError } from '../../protocol/errors.ts'
import type { ProviderHost, ProviderSource, ProviderStatus } from '../../protocol/provider.ts'
import { LineLimit, limits, paceOf, type Semaphore, ShareError } from '../base/limits/index.ts'
import { CatalogueShares } from './catalogues/shares.ts'
import { Children } from './links/pool.ts'
import type { TransportDeps } from './links/transport.ts'
import type { Logins } from './login/logins.ts'
import { SharedApi } from './openapi/api.ts'
import { probe, type Probe } from './probe.ts'
import { StatusLog } from './status-log.ts'
import { Upstream } from './upstream.ts'

interface UpstreamsDeps {
  clientInfo: { name: string, version: string }
  transport: Omit<TransportDeps, 'onLine' | 'sharedApi' | 'pace'>
  /** Bounds how many processes are spawned and sockets dialled at once. */
  dialling: Semaphore
  cache: CatalogueCache
  logins: Pick<Logins, 'open' | 'openForTest' | 'close'>
  /** The user to whom a server is counted; undefined: an admin. */
  userOf: (config: Server['config']) => string | undefined
  /** In ms. */
  initTimeout: number
  requestTimeout: number
  /** Whether the value of a header holds a credential of this gateway's: it goes to no server. */
  isOurs?: (value: string) => boolean
  /** Receives what a server's process prints beside its messages, line by line. */
  onLine: (server: string, line: string) => void
  log: (server: string, level: 'info' | 'warn' | 'debug', sentence: string, more?: Record<string, unknown>) => void
  /** Sentences about the stored config of a server that has just listed its items. */
  remarks?: (server: string, catalogue: Catalogue) => readonly string[]
}

/** A host that ignores everything, until a gateway connects. */
const noHost: ProviderHost = { changed: () => {}, question: async () => {}, broadcast: () => {} }

/** All servers that are alive, as the gateway's source of providers. */
export class Upstreams implements ProviderSource {
  readonly #deps: UpstreamsDeps
  readonly #upstreams = new Map<string, Upstream>()
  /** Upstreams that are being closed, by name. */
  readonly #ending = new Map<string, Promise<void>>()
  /** Servers that list something else to some client than to its class. */
  readonly #withOwnCatalogues = new Set<Upstream>()
  readonly #remarked = new WeakSet<Upstream>()
  readonly #statusLogs = new WeakMap<Upstream, StatusLog>()
  /** The names of the servers that were applied last, disabled ones too. */
  #configured: readonly string[] = []
  #host = noHost
  /** The servers of the first snapshot have been put. */
  #isStarted = false
  #closed = false
  readonly #children = new Children()
  readonly #shares = new CatalogueShares()

  constructor (deps: UpstreamsDeps) {
    this.#deps = deps
  }

  connect (host: ProviderHost): void { this.#host = host }

  get (name: string): Upstream | undefined { return this.#upstreams.get(name) }

  catalogueKey (client: Client): string {
    if (this.#withOwnCatalogues.size === 0) return ''
    return [...this.#withOwnCatalogues].flatMap((upstream) => upstream.ownCatalogue(client) ?? []).join()
  }

  /** Applies the servers of a snapshot: those that are new, changed or gone are connected, reconnected or closed, and no others. */
  async apply (servers: ReadonlyMap<string, Server>): Promise<void> {
    // A last change of the settings (when a key was used) is stored while the gateway closes: it must not start any server again.
    if (this.#closed) return
    const former = new Map<string, Upstream>()
    for (const [name, upstream] of this.#upstreams) {
      const server = servers.get(name)
      if (server && isUsable(server) && (server.config === upstream.config || sameConnection(server.config, upstream.config))) continue
      this.#upstreams.delete(name)
      this.#withOwnCatalogues.delete(upstream)
      former.set(name, upstream)
    }
    const fresh: Upstream[] = []
    for (const [name, server] of servers) {
      if (isUsable(server) && !this.#upstreams.has(name)) fresh.push(this.#put(server, former.get(name)))
    }
    if (!this.#isStarted) this.#forgetOthers(servers.keys())
    this.#isStarted = true
    for (const upstream of former.values()) this.#end(upstream)
    for (const name of this.#configured) if (!servers.has(name)) this.#forget(name)
    this.#configured = [...servers.keys()]
    await Promise.all(fresh.map(async (upstream) => { await upstream.restore(() => this.#deps.cache.read(upstream.name)) }))
    this.#host.changed()
    await Promise.all(fresh.map(async (upstream) => { await this.#connect(upstream) }))
  }

  /** Closes a server's connections and opens them anew; resolves when the old ones are closed. */
  async restart (name: string): Promise<void> {
    const former = this.#upstreams.get(name)
    if (!former) return
    this.#withOwnCatalogues.delete(former)
    const upstream = this.#put({ name, config: former.config }, former)
    this.#end(former)
    await upstream.restore(() => this.#deps.cache.read(name))
    await this.#connect(upstream)
  }

  /** Ends the connections that were those of accounts which are gone: a later account of the same name gets none of them. */
  async endOf (users: ReadonlySet<string>): Promise<void> {
    await Promise.all([...this.#upstreams.values()].map(async (upstream) => { await upstream.endOf(users) }))
  }

  /** Resolves when nothing is left of a server's former connections: its processes have ended. */
  async ended (name: string): Promise<void> {
    await this.#ending.get(name)
  }

  /** How many connections there are. */
  get links (): number {
    let links = 0
    for (const upstream of this.#upstreams.values()) links += upstream.links
    return links
  }

  /** How many servers are in which state. */
  counts (): Record<ProviderStatus, number> {
    const counts: Record<ProviderStatus, number> = { connecting: 0, connected: 0, disconnected: 0, oauth_required: 0, disabled: 0 }
    for (const { status } of this.#upstreams.values()) counts[status]++
    return counts
  }

  /**
   * Connects to a server as it is configured, once, reads its lists, and ends the connection. Nothing of it is kept. No login is begun; one
   * that is there for this config is used.
   * @param config as it would be stored
   * @param signal aborted: nobody waits for the result
   * @throws ShareError where lists of its user's servers were read often
   */
  async probe (name: string, { enabled: _, startOnDemand: __, ...config }: Server['config'], signal: AbortSignal): Promise<Probe> {
    const { transport, userOf, logins, log: ____, cache: ___, remarks: _____, ...deps } = this.#deps
    if (userOf(config) !== undefined && this.#shares.wait(name, userOf(config)) > 0) {
      throw new ShareError('Lists of your servers were read as often as those of one user may be; try again in some seconds', true)
    }
    const make = (statusChanged: () => void): Upstream => new Upstream(name, config, {
      ...deps,
      children: new Children(),
      isUsers: () => userOf(config) !== undefined,
      isWaitedFor: () => false,
      room: () => this.#shares.room(name, userOf(config)),
      hold: () => {},
      wait: () => 0,
      spend: (size) => { this.#shares.spend(name, userOf(config), size) },
      transport: { ...transport, sharedApi: new SharedApi(), pace: paceOf(userOf(config)), onLine: () => {} },
      log: () => {},
      listsChanged: () => {},
      statusChanged,
      openLogin: (listener) => logins.openForTest(name, config, listener),
      keep: () => {},
      onQuestion: async () => { throw new RpcError(code.methodNotFound, 'nobody can be asked while a server is tested') },
      broadcast: () => {}
    })
    return await probe(make, limits.serverTests.time, signal)
  }

  /** The servers that are configured and not disabled, and whether each can be called now. */
  * reachable (): Generator<[name: string, isAvailable: boolean]> {
    for (const [name, upstream] of this.#upstreams) yield [name, upstream.available]
  }

  async close (): Promise<void> {
    this.#closed = true
    for (const upstream of this.#upstreams.values()) this.#statusLogs.get(upstream)?.end()
    await Promise.all([...this.#upstreams.values()].map(async (upstream) => { await upstream.close() }))
    this.#upstreams.clear()
    await Promise.allSettled(this.#ending.values())
    await this.#deps.cache.settled()
  }

  /** At the start: removes what servers listed that were removed while the gateway was down. */
  #forgetOthers (configured: Iterable<string>): void {
    const { cache, log } = this.#deps
    cache.keepOnly?.(configured).catch((error: unknown) => {
      log('catalogues', 'warn', 'those of removed servers could not be removed from disk', { error })
    })
  }

  /** Removes what a removed server listed from the cache. */
  #forget (name: string): void {
    const { cache, log } = this.#deps
    cache.remove(name).catch((error: unknown) => { log(name, 'warn', 'its catalogue could not be removed from disk', { error }) })
  }

  #end (upstream: Upstream): void {
    const { name, login } = upstream
    this.#statusLogs.get(upstream)?.end()
    if (login) this.#deps.logins.close(name, login)
    const ending = Promise.all([this.#ending.get(name), upstream.close()]).then(() => {
      if (this.#ending.get(name) === ending) this.#ending.delete(name)
    })
    this.#ending.set(name, ending)
  }

  /** Connects when the server's former upstream has ended: both may want the same port. No other server waits for that. */
  async #connect (upstream: Upstream): Promise<void> {
    await this.ended(upstream.name)
    if (this.#upstreams.get(upstream.name) === upstream) upstream.connect()
  }

  /** A new upstream for a server, in place of its former one. */
  #put (server: Server, former: Upstream | undefined): Upstream {
    const upstream = this.#make(server)
    this.#upstreams.set(server.name, upstream)
    if (former) upstream.adopt(former)
    return upstream
  }

  #make ({ name, config }: Server): Upstream {
    const { log, cache, transport, userOf, logins, onLine: print, remarks: _, ...deps } = this.#deps
    const isFirst = !this.#isStarted
    const statusLog = new StatusLog((level, sentence, more) => { log(name, level, sentence, more) })
    const { lines, size } = limits.stderrLines
    const printed = new LineLimit({ burst: size, perSecond: size }, (omitted) => { print(name, `${omitted} more lines in this second`) })
    // The text of a line is made only if it is printed.
    const onLine: TransportDeps['onLine'] = ({ length, text }) => {
      if (printed.allows(Math.max(length, size / lines))) print(name, text())
    }
    const upstream: Upstream = new Upstream(name, config, {
      ...deps,
      children: this.#children,
      isUsers: () => userOf(config) !== undefined,
      // Others wait for the servers that this process has started with; one that is added or reloaded, its owner waits for.
      isWaitedFor: ({ user }) => isFirst || user === userOf(config),
      room: () => this.#shares.room(name, userOf(config)),
      hold: (size) => {
        // A successor of the same name holds its own.
        const isSucceeded = size === 0 && (this.#upstreams.get(name) ?? upstream) !== upstream
        if (!isSucceeded) this.#shares.hold(name, userOf(config), size)
      },
      // What another address of the same server lists is new each time.
      wait: (isFirst) => isFirst && userOf(config) === undefined ? 0 : this.#shares.wait(name, userOf(config)),
      spend: (size) => { this.#shares.spend(name, userOf(config), size) },
      transport: { ...transport, sharedApi: new SharedApi(), pace: paceOf(userOf(config)), onLine },
      log: statusLog.remark,
      listsChanged: () => {
        if (this.#upstreams.get(name) !== upstream) return
        if (upstream.hasOwnCatalogues) this.#withOwnCatalogues.add(upstream)
        else this.#withOwnCatalogues.delete(upstream)
        this.#host.changed()
      },
      statusChanged: () => {
        statusLog.status(upstream.status, upstream.error, upstream.protocolVersion)
        if (upstream.status === 'connected') this.#logRemarks(upstream)
      },
      openLogin: (listener) => logins.open(name, config, listener),
      keep: (text) => {
        // What a removed server listed goes with it, and never to another one of its name.
        if (this.#upstreams.get(name) !== upstream) return
        cache.write(name, text).catch((error: unknown) => { log(name, 'warn', 'its catalogue could not be kept on disk', { error }) })
      },
      onQuestion: async (question, client) => { await this.#host.question(name, question, client) },
      broadcast: (...message) => { this.#host.broadcast(name, ...message) }
    })
    this.#statusLogs.set(upstream, statusLog)
    return upstream
  }

  /** Once for each upstream, not with each of its connections. */
  #logRemarks (upstream: Upstream): void {
    const [catalogue] = upstream.catalogues()
    if (catalogue === undefined || this.#remarked.has(upstream)) return
    this.#remarked.add(upstream)
    for (const sentence of this.#deps.remarks?.(upstream.name, catalogue) ?? []) this.#deps.log(upstream.name, 'warn', sentence)
  }
}

/** Members of a config that can change without a new connection. */
const withoutConnection: ReadonlySet<string> = new Set([
  'enabled', 'owner', 'visibility', 'description', 'createdAt', 'tools', 'prompts', 'resources', 'sharedWithUsers'
])

/** True when a connection made with one config serves the other too. */
function sameConnection (a: Server['config'], b: Server['config']): boolean {
  const names = new Set([...Object.keys(a), ...Object.keys(b)].filter((name) => !withoutConnection.has(name)))
  return [...names].every((name) => isSame(a[name as keyof typeof a], b[name as keyof typeof b]))
}

/** Whether two values have the same JSON. They are compared until they differ, since a config may hold a megabyte. */
function isSame (a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null || Array.isArray(a) !== Array.isArray(b)) return false
  const [names, others] = [Object.keys(a), Object.keys(b)]
  if (names.length !== others.length) return false
  for (let at = 0; at < names.length; at++) {
    const name = names[at] ?? ''
    if (name !== others[at] || !isSame((a as Record<string, unknown>)[name], (b as Record<string, unknown>)[name])) return false
  }
  return true
}
