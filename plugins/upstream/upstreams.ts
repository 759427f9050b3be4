import { EventEmitter } from 'node:events'
import { isUsable, type CatalogueCache, type Server } from '../../db/store.ts'
import { code, RpcError } from '../../protocol/errors.ts'
import type { Client, Question } from '../../protocol/exchange.ts'
import { classOf } from '../../protocol/legacy/capabilities.ts'
import { limits } from '../limits/index.ts'
import type { Semaphore } from '../limits/semaphore.ts'
import { Rest } from './openapi/api.ts'
import { limited } from './links/line-limit.ts'
import type { TransportDeps } from './links/transport.ts'
import { Upstream, type Status } from './upstream.ts'

export interface UpstreamsDeps {
  clientInfo: { name: string, version: string }
  transport: Omit<TransportDeps, 'onLine' | 'rest'>
  spawning: Semaphore
  cache: CatalogueCache
  /** In ms. */
  initTimeout: number
  requestTimeout: number
  log: (server: string, level: 'info' | 'warn' | 'debug', sentence: string, more?: Record<string, unknown>) => void
}

/** What upstreams tell to whoever listens. */
export interface UpstreamEvents {
  /** What is listed has changed; the generation has risen. */
  changed: []
  /** A message of one server for everybody who sees it: server, method, params as text, and whether a client is served where it came from. */
  broadcast: [string, string, string, (client: Client) => boolean]
}

/** All servers that are alive. */
export class Upstreams extends EventEmitter<UpstreamEvents> {
  readonly #deps: UpstreamsDeps
  readonly #upstreams = new Map<string, Upstream>()
  /** Which servers remember something of a client, so that its end costs no walk through all. */
  readonly #touched = new Map<string, Set<Upstream>>()
  /** What is being ended, by name. */
  readonly #ending = new Map<string, Promise<void>>()
  readonly #releasing = new Set<Promise<unknown>>()
  /** Servers that list something else to some client than to its class. */
  readonly #withOwn = new Set<Upstream>()
  /** Questions may be looked at, and refused, before they go out. */
  onQuestion: (server: string, question: Question, client: Client) => Promise<void> = async () => {}
  /** Rises with every change of what is listed. */
  generation = 0
  #closed = false

  constructor (deps: UpstreamsDeps) {
    super()
    this.#deps = deps
  }

  get (name: string): Upstream | undefined { return this.#upstreams.get(name) }

  /** Takes up the servers of a snapshot: what is new, changed or gone, and nothing else, is connected, reconnected or dropped. */
  async apply (servers: ReadonlyMap<string, Server>): Promise<void> {
    // A last change of the settings (when a key was used, say) is stored while the gateway closes: it must start no server anew.
    if (this.#closed) return
    const former = new Map<string, Upstream>()
    for (const [name, upstream] of this.#upstreams) {
      const server = servers.get(name)
      if (server && isUsable(server) && (server.config === upstream.config || sameConnection(server.config, upstream.config))) continue
      this.#upstreams.delete(name)
      this.#withOwn.delete(upstream)
      former.set(name, upstream)
    }
    const fresh: Upstream[] = []
    for (const [name, server] of servers) {
      if (isUsable(server) && !this.#upstreams.has(name)) fresh.push(this.#put(server, former.get(name)))
    }
    for (const upstream of former.values()) this.#end(upstream)
    await Promise.all(fresh.map(async (upstream) => { upstream.restore(await this.#deps.cache.read(upstream.name)) }))
    this.#changed()
    await Promise.all(fresh.map(async (upstream) => { await this.#connect(upstream) }))
  }

  /** Drops a server's connections and makes them anew; resolves when the old ones are gone. */
  async restart (name: string): Promise<void> {
    const former = this.#upstreams.get(name)
    if (!former) return
    const upstream = this.#put({ name, config: former.config }, former)
    this.#end(former)
    upstream.restore(await this.#deps.cache.read(name))
    await this.#connect(upstream)
  }

  /** Resolves when nothing is left of what a server was before: its processes have ended. */
  async ended (name: string): Promise<void> {
    await this.#ending.get(name)
  }

  #end (upstream: Upstream): void {
    const { name } = upstream
    const ending = Promise.all([this.#ending.get(name), upstream.close()]).then(() => {
      if (this.#ending.get(name) === ending) this.#ending.delete(name)
    })
    this.#ending.set(name, ending)
  }

  /** Connects when its former self has gone: both may want the same port. Nobody else waits for that. */
  async #connect (upstream: Upstream): Promise<void> {
    await this.ended(upstream.name)
    if (this.#upstreams.get(upstream.name) === upstream) upstream.connect()
  }

  /** A server's upstream, in the place of the one that it had. */
  #put (server: Server, former: Upstream | undefined): Upstream {
    const upstream = this.#make(server)
    this.#upstreams.set(server.name, upstream)
    if (former) for (const client of upstream.adopt(former)) this.touch(client, upstream)
    return upstream
  }

  /** How many connections there are. */
  get links (): number {
    let links = 0
    for (const upstream of this.#upstreams.values()) links += upstream.links
    return links
  }

  /** How many servers are in which state. */
  counts (): Record<Status, number> {
    const counts: Record<Status, number> = { connecting: 0, connected: 0, disconnected: 0, oauth_required: 0, disabled: 0 }
    for (const { status } of this.#upstreams.values()) counts[status]++
    return counts
  }

  /** Notes that a server remembers something of a client, until `release`. */
  touch (client: Client, upstream: Upstream): void {
    const touched = this.#touched.get(client.id)
    if (touched) touched.add(upstream)
    else this.#touched.set(client.id, new Set([upstream]))
  }

  /** A server that a client is about to use. @throws RpcError -32001 when it is not there */
  used (name: string, client: Client): Upstream {
    const upstream = this.#upstreams.get(name)
    if (!upstream) throw new RpcError(code.unavailable, `Server ${JSON.stringify(name)} is not connected`)
    this.touch(client, upstream)
    return upstream
  }

  /** The servers that remember something of a client, as they are now. */
  touchedBy (client: Client): Upstream[] {
    return [...this.#touched.get(client.id) ?? []].filter((upstream) => this.#upstreams.get(upstream.name) === upstream)
  }

  /** A client is gone, or may not use some servers any more. @param from those that let go of it; undefined: all */
  async release (client: Client, from?: ReadonlySet<Upstream>): Promise<void> {
    const touched = this.#touched.get(client.id)
    if (!touched) return
    const leaving = [...touched].filter((upstream) => from?.has(upstream) !== false)
    for (const upstream of leaving) touched.delete(upstream)
    if (touched.size === 0) this.#touched.delete(client.id)
    const releasing = Promise.all(
      leaving.map(async (upstream) => {
        await upstream.release(client)
      })
    ).finally(() => {
      this.#releasing.delete(releasing)
    })
    this.#releasing.add(releasing)
    await releasing
  }

  /** Equal texts: the same catalogues, at one generation. */
  catalogueKey (client: Client): string {
    const own: number[] = []
    for (const upstream of this.#withOwn) {
      const id = upstream.ownCatalogue(client)
      if (id !== undefined) own.push(id)
    }
    return own.length === 0 ? classOf(client.capabilities) : `${own.join()} ${classOf(client.capabilities)}`
  }

  /**
   * Waits until it is known what these servers list to this client, what they have just said to be new included, but no longer
   * than is worth it: a server that is down, or was silent in the last run too, is not waited for.
   * @param patient the list is aimed at one server: wait while it connects
   */
  async learn (names: Iterable<string>, client: Client, patient: boolean): Promise<void> {
    const waits: Array<Promise<unknown>> = []
    let longest = 0
    for (const name of names) {
      const upstream = this.#upstreams.get(name)
      if (!upstream) continue
      const news = upstream.catchUp(client)
      if (news && news.patience > 0) {
        longest = Math.max(longest, news.patience)
        waits.push(news.done)
      }
      if (upstream.knows(client)) continue
      // A client that the server may show more to is worth a wait; that nobody has ever seen it is, too. Among several, one that has
      // little to do for it (no process must start), or is known to be slow at that, has little time: it may have stopped answering.
      const patience =
        upstream.status === 'connected'
          ? Math.min(upstream.patienceFor(client), patient || upstream.startsWithin(limits.newClass) ? Infinity : limits.firstAnswer)
          : upstream.status !== 'connecting'
            ? 0
            : patient
              ? limits.connectPatience
              : upstream.promising
      if (patience <= 0) continue
      longest = Math.max(longest, patience)
      this.touch(client, upstream)
      waits.push(upstream.learn(client).catch(() => {}))
    }
    if (waits.length === 0) return
    let timer: NodeJS.Timeout | undefined
    await Promise.race([Promise.all(waits), new Promise((resolve) => { timer = setTimeout(resolve, longest) })])
    clearTimeout(timer)
  }

  /** Ends everything, for good. */
  async close (): Promise<void> {
    this.#closed = true
    await Promise.all([...this.#upstreams.values()].map(async (upstream) => { await upstream.close() }))
    this.#upstreams.clear()
    // Links of clients that have just gone are still being closed.
    await Promise.allSettled([...this.#releasing, ...this.#ending.values()])
  }

  #changed (): void {
    this.generation++
    this.emit('changed')
  }

  #make ({ name, config }: Server): Upstream {
    const { log, cache, transport, ...deps } = this.#deps
    const upstream: Upstream = new Upstream(name, config, {
      ...deps,
      transport: {
        ...transport,
        rest: new Rest(),
        onLine: limited(
          limits.stderrLines,
          (line) => {
            log(name, 'debug', line)
          },
          (dropped) => {
            log(name, 'debug', `${dropped} more lines in this second`)
          }
        )
      },
      log: (level, sentence, more) => {
        log(name, level, sentence, more)
      },
      listed: () => {
        if (this.#upstreams.get(name) !== upstream) return
        if (upstream.hasOwnCatalogues) this.#withOwn.add(upstream)
        else this.#withOwn.delete(upstream)
        this.#changed()
      },
      moved: () => {
        if (upstream.status === 'connected') log(name, 'info', 'connected')
        else if (upstream.status === 'disconnected') {
          log(
            name,
            upstream.error === null ? 'info' : 'warn',
            upstream.error === null ? 'stopped until it is needed' : `not connected: ${upstream.error}`
          )
        }
      },
      keep: (text) => {
        cache.write(name, text).catch((error: unknown) => {
          log(name, 'warn', 'its catalogue could not be kept on disk', { error })
        })
      },
      onQuestion: async (question, client) => {
        await this.onQuestion(name, question, client)
      },
      broadcast: (...message) => {
        this.emit('broadcast', name, ...message)
      }
    })
    return upstream
  }
}

/** What of a config needs no new connection when it changes. */
const labels = new Set([
  'enabled',
  'owner',
  'visibility',
  'visibilityDefaulted',
  'description',
  'createdAt',
  'tools',
  'prompts',
  'resources',
  'sharedWithUsers'
])

/** True when a connection made with one config serves the other too. */
function sameConnection (a: Server['config'], b: Server['config']): boolean {
  const essence = (config: Server['config']): string =>
    JSON.stringify(
      Object.entries(config)
        .filter(([key]) => !labels.has(key))
        .sort(([x], [y]) => (x < y ? -1 : 1))
    )
  return essence(a) === essence(b)
}
