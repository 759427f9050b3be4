import { isUsableServer, type CatalogueCache, type Server } from '../../db/store.ts'
import type { Client } from '../../protocol/exchange.ts'
import type { Catalogue } from '../../protocol/lists.ts'
import type { ProviderHost, ProviderSource, ProviderStatus } from '../../protocol/provider.ts'
import { rateLimiterForServerOf, ShareError } from '../base/limits/index.ts'
import { noReview, type CatalogueReviewer } from './catalogues/review.ts'
import { CatalogueShares } from './catalogues/shares.ts'
import { canReuseConnection } from './links/connection-config.ts'
import { ChildCounts } from './links/pool.ts'
import type { ConnectionSettings } from './links/connect.ts'
import type { TransportDeps } from './links/transport.ts'
import type { Logins } from './login/logins.ts'
import { SharedApi } from './openapi/api.ts'
import type { UserValues } from './values/values.ts'
import { probeDeps, probeServer, type ProbeResult } from './probe.ts'
import { limitedPrinter, StatusLog } from './status-log.ts'
import { noProviderHost } from './upstream-deps.ts'
import { Upstream } from './upstream.ts'
import { upstreamLimits } from './limits.ts'

interface UpstreamsDeps {
  connecting: ConnectionSettings<Omit<TransportDeps, 'onLine' | 'sharedApi' | 'pace'>>
  cache: CatalogueCache
  logins: Pick<Logins, 'open' | 'openForTest' | 'close'>
  userValues: Pick<UserValues, 'open' | 'openForTest' | 'close'>
  settings: {
    /** Returns the user whose limits apply to a server; undefined if they are those of an admin. */
    userOf: (config: Server['config']) => string | undefined
    /** Returns warnings about the stored config of a server whose items have just been listed. */
    remarks: (server: string, catalogue: Catalogue) => readonly string[]
  }
  review?: CatalogueReviewer
  /** Receives the lines that a server's process prints, except MCP messages. */
  onLine: (server: string, line: string) => void
  log: (server: string, level: 'info' | 'warn' | 'debug', sentence: string, more?: Record<string, unknown>) => void
}

/** All running servers, as the gateway's source of providers. */
export class Upstreams implements ProviderSource {
  readonly #deps: UpstreamsDeps
  readonly #upstreams = new Map<string, Upstream>()
  readonly #ending = new Map<string, Promise<void>>()
  /** Servers with a catalogue for a single client, which differs from the one for the client's capability class. */
  readonly #withOwnCatalogues = new Set<Upstream>()
  readonly #remarked = new WeakSet<Upstream>()
  readonly #statusLogs = new WeakMap<Upstream, StatusLog>()
  /** The names of the servers in the snapshot that was last applied, including disabled servers. */
  #configured: readonly string[] = []
  #host: ProviderHost = noProviderHost
  /** Whether the servers of the first snapshot have been created. */
  #isStarted = false
  #closed = false
  readonly #children = new ChildCounts()
  readonly #shares = new CatalogueShares()

  constructor (deps: UpstreamsDeps) {
    this.#deps = deps
  }

  /** Sets the gateway that receives the servers' events. */
  connect (host: ProviderHost): void { this.#host = host }

  /** Notifies the gateway that the listed items of the servers' catalogues have changed. */
  notifyListsChanged (): void { this.#host.onListsChanged() }

  get (name: string): Upstream | undefined { return this.#upstreams.get(name) }

  catalogueKey (client: Client): string {
    if (this.#withOwnCatalogues.size === 0) return ''
    return [...this.#withOwnCatalogues].flatMap((upstream) => upstream.ownCatalogueId(client) ?? []).join()
  }

  /**
   * Applies the servers of a settings snapshot: connects servers that were added, reconnects those whose connection
   * settings changed, and closes those that were removed or disabled.
   */
  async apply (servers: ReadonlyMap<string, Server>): Promise<void> {
    // A change of settings while the gateway closes must not start a server again.
    if (this.#closed) return
    const former = new Map<string, Upstream>()
    for (const [name, upstream] of this.#upstreams) {
      const server = servers.get(name)
      if (server && isUsableServer(server) && (server.config === upstream.config ||
          canReuseConnection(server.config, upstream.config))) continue
      this.#upstreams.delete(name)
      this.#withOwnCatalogues.delete(upstream)
      former.set(name, upstream)
    }
    const fresh: Upstream[] = []
    for (const [name, server] of servers) {
      if (isUsableServer(server) && !this.#upstreams.has(name)) fresh.push(this.#put(server, former.get(name)))
    }
    if (!this.#isStarted) this.#forgetOthers(servers.keys())
    this.#isStarted = true
    for (const upstream of former.values()) this.#end(upstream)
    for (const name of this.#configured) if (!servers.has(name)) this.#forget(name)
    this.#configured = [...servers.keys()]
    await Promise.all(
      fresh.map(async (upstream) => { await upstream.restore(() => this.#deps.cache.read(upstream.name)) })
    )
    this.#host.onListsChanged()
    await Promise.all(fresh.map(async (upstream) => { await this.#connect(upstream) }))
  }

  /** Closes a server's connections and opens new ones; resolves when the old ones are closed. */
  async restart (name: string): Promise<void> {
    const former = this.#upstreams.get(name)
    if (!former) return
    this.#withOwnCatalogues.delete(former)
    const upstream = this.#put({ name, config: former.config }, former)
    this.#end(former)
    await upstream.restore(() => this.#deps.cache.read(name))
    await this.#connect(upstream)
  }

  /** Closes the connections of removed accounts, so that a later account of the same name gets none of them. */
  async endLinksOf (users: ReadonlySet<string>): Promise<void> {
    await Promise.all([...this.#upstreams.values()].map(async (upstream) => { await upstream.endLinksOf(users) }))
  }

  /** Resolves when a server's former connections are closed and its processes have ended. */
  async waitUntilClosed (name: string): Promise<void> {
    await this.#ending.get(name)
  }

  get linkCount (): number {
    let links = 0
    for (const upstream of this.#upstreams.values()) links += upstream.linkCount
    return links
  }

  countByStatus (): Record<ProviderStatus, number> {
    const counts: Record<ProviderStatus, number> = {
      connecting: 0, connected: 0, disconnected: 0, oauth_required: 0, disabled: 0
    }
    for (const { status } of this.#upstreams.values()) counts[status]++
    return counts
  }

  /**
   * Tests a config: connects to the server once, reads its lists, and closes the connection. Nothing is stored. A
   * stored login for this config is used, but no new login is begun.
   * @param config the config as it would be stored
   * @param signal aborted when the result is no longer needed
   * @throws ShareError when lists of the same user's servers were read too often
   */
  async probe (
    name: string, { enabled: _, startOnDemand: __, ...config }: Server['config'], signal: AbortSignal
  ): Promise<ProbeResult> {
    const { connecting, settings, logins, userValues } = this.#deps
    const user = settings.userOf(config)
    if (user !== undefined && this.#shares.waitTime(name, user) > 0) {
      throw new ShareError(
        'You have reached the limit for reloading the lists of your servers; try again in some seconds', true
      )
    }
    const make = (statusChanged: () => void): Upstream => new Upstream(name, config, {
      connecting: { ...connecting, transport: this.#transportFor(config, () => {}) },
      children: new ChildCounts(),
      openLogin: (listener) => logins.openForTest(name, config, listener),
      openValues: (changed) => userValues.openForTest(name, config, changed),
      allowance: {
        ...probeDeps.allowance,
        remainingSize: () => this.#shares.remainingSize(name, user),
        recordRead: (size) => { this.#shares.recordRead(name, user, size) }
      },
      review: noReview,
      waiting: { isUserOwned: () => user !== undefined, shouldWaitFor: () => false },
      listener: { ...probeDeps.listener, statusChanged }
    })
    return await probeServer(make, upstreamLimits.serverTests.time, signal)
  }

  /** Returns the running servers (configured and enabled), with their state. */
  states (): Iterable<[name: string, state: Pick<Upstream, 'isAvailable' | 'isCircuitOpen'>]> {
    return this.#upstreams.entries()
  }

  async close (): Promise<void> {
    this.#closed = true
    for (const upstream of this.#upstreams.values()) this.#statusLogs.get(upstream)?.end()
    await Promise.all([...this.#upstreams.values()].map(async (upstream) => { await upstream.close() }))
    this.#upstreams.clear()
    await Promise.allSettled(this.#ending.values())
    await this.#deps.cache.waitForWrites()
  }

  /** At the start, removes the stored lists of servers that were removed while the gateway was down. */
  #forgetOthers (configured: Iterable<string>): void {
    this.#logFailure(this.#deps.cache.keepOnly?.(configured), 'catalogues', 'some could not be removed from disk')
  }

  #forget (name: string): void {
    this.#logFailure(this.#deps.cache.remove(name), name, 'its catalogue could not be removed from disk')
  }

  #logFailure (work: Promise<void> | undefined, name: string, sentence: string): void {
    work?.catch((error: unknown) => { this.#deps.log(name, 'warn', sentence, { error }) })
  }

  #end (upstream: Upstream): void {
    const { name, login, values } = upstream
    this.#statusLogs.get(upstream)?.end()
    if (login) this.#deps.logins.close(name, login)
    if (values) this.#deps.userValues.close(name, values)
    const ending = Promise.all([this.#ending.get(name), upstream.close()]).then(() => {
      if (this.#ending.get(name) === ending) this.#ending.delete(name)
    })
    this.#ending.set(name, ending)
  }

  /** Connects a new upstream once the former upstream of the server has closed, since both may use the same port. */
  async #connect (upstream: Upstream): Promise<void> {
    await this.waitUntilClosed(upstream.name)
    if (this.#upstreams.get(upstream.name) === upstream) upstream.connect()
  }

  /** Creates an upstream for a server, replacing its former one. */
  #put (server: Server, former: Upstream | undefined): Upstream {
    const upstream = this.#make(server)
    this.#upstreams.set(server.name, upstream)
    if (former) upstream.adopt(former)
    return upstream
  }

  #make ({ name, config }: Server): Upstream {
    const { connecting, log, cache, settings: { userOf }, logins, userValues, onLine: print } = this.#deps
    const isFirst = !this.#isStarted
    const statusLog = new StatusLog((level, sentence, more) => { log(name, level, sentence, more) })
    const onLine = limitedPrinter((line) => { print(name, line) })
    const isCurrent = (): boolean => this.#upstreams.get(name) === upstream
    const upstream: Upstream = new Upstream(name, config, {
      connecting: { ...connecting, transport: this.#transportFor(config, onLine) },
      children: this.#children,
      openLogin: (listener) => logins.open(name, config, listener),
      openValues: (changed) => userValues.open(name, config, changed),
      review: this.#deps.review ?? noReview,
      allowance: {
        remainingSize: () => this.#shares.remainingSize(name, userOf(config)),
        setHeldSize: (size) => {
          // A newer upstream of the same name reports its own size.
          const isSucceeded = size === 0 && (this.#upstreams.get(name) ?? upstream) !== upstream
          if (!isSucceeded) this.#shares.setHeldSize(name, userOf(config), size)
        },
        // The lists of an admin's new server may be read at once.
        waitTime: (isFirst) =>
          isFirst && userOf(config) === undefined ? 0 : this.#shares.waitTime(name, userOf(config)),
        recordRead: (size) => { this.#shares.recordRead(name, userOf(config), size) },
        store: (text) => {
          // The stored lists of a removed server were removed with the server. Stored again, they could be shown for
          // another server of the same name.
          if (isCurrent()) this.#logFailure(cache.write(name, text), name, 'its catalogue could not be kept on disk')
        }
      },
      waiting: {
        isUserOwned: () => userOf(config) !== undefined,
        // All clients wait for the servers that this process started with; only owners wait for servers that they add
        // or reload.
        shouldWaitFor: ({ user }) => isFirst || user === userOf(config),
        successor: async () => { await this.waitUntilClosed(name); return isCurrent() ? undefined : this.get(name) }
      },
      listener: {
        log: statusLog.remark,
        listsChanged: () => {
          if (!isCurrent()) return
          if (upstream.hasOwnCatalogues) this.#withOwnCatalogues.add(upstream)
          else this.#withOwnCatalogues.delete(upstream)
          this.#host.onListsChanged()
        },
        statusChanged: () => {
          statusLog.status(upstream.status, upstream.error, upstream.protocolVersion)
          if (upstream.status === 'connected') this.#logRemarks(upstream)
        },
        onQuestion: async (question, client) => { await this.#host.onQuestion(name, question, client) },
        onNotification: (...message) => { this.#host.onNotification(name, ...message) },
        broadcast: (...message) => { this.#host.broadcast(name, ...message) },
        taskHandle: (...task) => this.#host.taskHandle(name, ...task)
      }
    })
    this.#statusLogs.set(upstream, statusLog)
    return upstream
  }

  #transportFor (config: Server['config'], onLine: TransportDeps['onLine']): TransportDeps {
    const { connecting: { transport }, settings } = this.#deps
    return { ...transport, sharedApi: new SharedApi(), pace: rateLimiterForServerOf(settings.userOf(config)), onLine }
  }

  /** Logs warnings about the server's stored config once per upstream, not once per connection. */
  #logRemarks (upstream: Upstream): void {
    const [catalogue] = upstream.catalogues()
    if (catalogue === undefined || this.#remarked.has(upstream)) return
    this.#remarked.add(upstream)
    for (const sentence of this.#deps.settings.remarks(upstream.name, catalogue)) {
      this.#deps.log(upstream.name, 'warn', sentence)
    }
  }
}
