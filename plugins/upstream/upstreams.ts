import { isUsable, type CatalogueCache, type Server } from '../../db/store.ts'
import type { Client } from '../../protocol/exchange.ts'
import type { Catalogue } from '../../protocol/lists.ts'
import type { ProviderHost, ProviderSource, ProviderStatus } from '../../protocol/provider.ts'
import { LineLimit, paceOf, ShareError } from '../base/limits/index.ts'
import { CatalogueShares } from './catalogues/shares.ts'
import { sameConnection } from './links/connection-config.ts'
import { Children } from './links/pool.ts'
import type { Connecting } from './links/connect.ts'
import type { TransportDeps } from './links/transport.ts'
import type { Logins } from './login/logins.ts'
import { SharedApi } from './openapi/api.ts'
import { forTest, probe, type Probe } from './probe.ts'
import { StatusLog } from './notes.ts'
import { Upstream } from './upstream.ts'
import { upstreamLimits } from './limits.ts'

interface UpstreamsDeps {
  connecting: Connecting<Omit<TransportDeps, 'onLine' | 'sharedApi' | 'pace'>>
  cache: CatalogueCache
  logins: Pick<Logins, 'open' | 'openForTest' | 'close'>
  settings: {
    /** The user that a server counts to; undefined: an admin. */
    userOf: (config: Server['config']) => string | undefined
    /** Sentences about the stored config of a server that has just listed its items. */
    remarks: (server: string, catalogue: Catalogue) => readonly string[]
  }
  /** Whether the value of a header holds a credential of this gateway, which goes to no server. */
  isOurs?: (value: string) => boolean
  /** Receives what a server's process prints beside its messages, line by line. */
  onLine: (server: string, line: string) => void
  log: (server: string, level: 'info' | 'warn' | 'debug', sentence: string, more?: Record<string, unknown>) => void
}

/** The host until a gateway connects: it ignores everything. */
const noHost: ProviderHost = { changed: () => {}, question: async () => {}, broadcast: () => {} }

/** All servers that are alive, as the gateway's source of providers. */
export class Upstreams implements ProviderSource {
  readonly #deps: UpstreamsDeps
  readonly #upstreams = new Map<string, Upstream>()
  readonly #ending = new Map<string, Promise<void>>()
  /** Servers that list something else to some client than to its class. */
  readonly #withOwnCatalogues = new Set<Upstream>()
  readonly #remarked = new WeakSet<Upstream>()
  readonly #statusLogs = new WeakMap<Upstream, StatusLog>()
  /** The names of the servers that were applied last, disabled ones too. */
  #configured: readonly string[] = []
  #host = noHost
  /** The servers of the first snapshot are there. */
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

  /**
   * Applies the servers of a snapshot: connects, reconnects or closes those that are new, changed or gone, and no
   * others.
   */
  async apply (servers: ReadonlyMap<string, Server>): Promise<void> {
    // Settings are stored until the gateway closes (when a key was used), which must not start a server again.
    if (this.#closed) return
    const former = new Map<string, Upstream>()
    for (const [name, upstream] of this.#upstreams) {
      const server = servers.get(name)
      if (server && isUsable(server) && (server.config === upstream.config ||
          sameConnection(server.config, upstream.config))) continue
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
    await Promise.all(
      fresh.map(async (upstream) => { await upstream.restore(() => this.#deps.cache.read(upstream.name)) })
    )
    this.#host.changed()
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

  /** Ends the connections of accounts that are gone: a later account of the same name gets none of them. */
  async endOf (users: ReadonlySet<string>): Promise<void> {
    await Promise.all([...this.#upstreams.values()].map(async (upstream) => { await upstream.endOf(users) }))
  }

  /** Resolves when nothing is left of a server's former connections: its processes have ended. */
  async ended (name: string): Promise<void> {
    await this.#ending.get(name)
  }

  get links (): number {
    let links = 0
    for (const upstream of this.#upstreams.values()) links += upstream.links
    return links
  }

  counts (): Record<ProviderStatus, number> {
    const counts: Record<ProviderStatus, number> = {
      connecting: 0, connected: 0, disconnected: 0, oauth_required: 0, disabled: 0
    }
    for (const { status } of this.#upstreams.values()) counts[status]++
    return counts
  }

  /**
   * Connects to a server once, reads its lists, and ends the connection. Nothing of it is kept. No login is begun; one
   * that is there for this config is used.
   * @param config as it would be stored
   * @param signal aborted: the result is not needed
   * @throws ShareError where lists of its user's servers were read often
   */
  async probe (
    name: string, { enabled: _, startOnDemand: __, ...config }: Server['config'], signal: AbortSignal
  ): Promise<Probe> {
    const { connecting, settings, logins, isOurs } = this.#deps
    const user = settings.userOf(config)
    if (user !== undefined && this.#shares.wait(name, user) > 0) {
      throw new ShareError('Lists of your servers were read as often as those of one user may be; try again in some ' +
        'seconds', true)
    }
    const make = (statusChanged: () => void): Upstream => new Upstream(name, config, {
      connecting: { ...connecting, transport: this.#transportFor(config, () => {}) },
      children: new Children(),
      isOurs,
      openLogin: (listener) => logins.openForTest(name, config, listener),
      allowance: {
        ...forTest.allowance,
        room: () => this.#shares.room(name, user),
        spend: (size) => { this.#shares.spend(name, user, size) }
      },
      waiting: { isUsers: () => user !== undefined, isWaitedFor: () => false },
      listener: { ...forTest.listener, statusChanged }
    })
    return await probe(make, upstreamLimits.serverTests.time, signal)
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

  #forget (name: string): void {
    const { cache, log } = this.#deps
    cache.remove(name).catch((error: unknown) => {
      log(name, 'warn', 'its catalogue could not be removed from disk', { error })
    })
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

  /** Connects when the server's former upstream has ended: both may want the same port. */
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
    const { connecting, log, cache, settings: { userOf }, logins, isOurs, onLine: print } = this.#deps
    const isFirst = !this.#isStarted
    const statusLog = new StatusLog((level, sentence, more) => { log(name, level, sentence, more) })
    const { lines, size } = upstreamLimits.stderrLines
    const printed = new LineLimit(
      { burst: size, perSecond: size }, (omitted) => { print(name, `${omitted} more lines in this second`) }
    )
    // The text of a line is made only if it is printed.
    const onLine: TransportDeps['onLine'] = ({ length, text }) => {
      if (printed.allows(Math.max(length, size / lines))) print(name, text())
    }
    const isCurrent = (): boolean => this.#upstreams.get(name) === upstream
    const upstream: Upstream = new Upstream(name, config, {
      connecting: { ...connecting, transport: this.#transportFor(config, onLine) },
      children: this.#children,
      isOurs,
      openLogin: (listener) => logins.open(name, config, listener),
      allowance: {
        room: () => this.#shares.room(name, userOf(config)),
        hold: (size) => {
          // A successor of the same name holds its own.
          const isSucceeded = size === 0 && (this.#upstreams.get(name) ?? upstream) !== upstream
          if (!isSucceeded) this.#shares.hold(name, userOf(config), size)
        },
        // What another address of the same server lists is new each time.
        wait: (isFirst) => isFirst && userOf(config) === undefined ? 0 : this.#shares.wait(name, userOf(config)),
        spend: (size) => { this.#shares.spend(name, userOf(config), size) },
        keep: (text) => {
          // What a removed server listed is removed with it, and never shown as that of another one of its name.
          if (!isCurrent()) return
          cache.write(name, text).catch((error: unknown) => {
            log(name, 'warn', 'its catalogue could not be kept on disk', { error })
          })
        }
      },
      waiting: {
        isUsers: () => userOf(config) !== undefined,
        // All clients wait for the servers that this process has started with, and owners for those that they add or
        // reload.
        isWaitedFor: ({ user }) => isFirst || user === userOf(config)
      },
      listener: {
        log: statusLog.remark,
        listsChanged: () => {
          if (!isCurrent()) return
          if (upstream.hasOwnCatalogues) this.#withOwnCatalogues.add(upstream)
          else this.#withOwnCatalogues.delete(upstream)
          this.#host.changed()
        },
        statusChanged: () => {
          statusLog.status(upstream.status, upstream.error, upstream.protocolVersion)
          if (upstream.status === 'connected') this.#logRemarks(upstream)
        },
        onQuestion: async (question, client) => { await this.#host.question(name, question, client) },
        broadcast: (...message) => { this.#host.broadcast(name, ...message) }
      }
    })
    this.#statusLogs.set(upstream, statusLog)
    return upstream
  }

  #transportFor (config: Server['config'], onLine: TransportDeps['onLine']): TransportDeps {
    const { connecting: { transport }, settings } = this.#deps
    return { ...transport, sharedApi: new SharedApi(), pace: paceOf(settings.userOf(config)), onLine }
  }

  /** Once for each upstream, and not for each connection. */
  #logRemarks (upstream: Upstream): void {
    const [catalogue] = upstream.catalogues()
    if (catalogue === undefined || this.#remarked.has(upstream)) return
    this.#remarked.add(upstream)
    for (const sentence of this.#deps.settings.remarks(upstream.name, catalogue)) {
      this.#deps.log(upstream.name, 'warn', sentence)
    }
  }
}
