import type { Snapshot } from '../../db/store.ts'
import { code, RpcError } from '../../protocol/errors.ts'
import type { Client, Exchange } from '../../protocol/exchange.ts'
import { limits } from '../limits/index.ts'
import type { Upstream } from '../upstream/upstream.ts'
import type { Upstreams } from '../upstream/upstreams.ts'
import { showsApps } from './apps.ts'
import { ResourceLinks } from './resource-links.ts'
import { exposedName, isCut } from './names.ts'
import { foldSurface, isHidden, readerOf, type Surface, type Target } from './surface.ts'
import type { View } from '../access/view.ts'
import { reach, type PublicReach, type VisibleServer } from '../access/visibility.ts'

/** What a route says of itself when a session begins. */
export interface Description { capabilities: Record<string, unknown>, serverInfo: string, instructions: string | undefined }

/** What each view sees, and where the names that it sees lead. */
export class Surfaces {
  /** What results linked to. */
  readonly linked = new ResourceLinks()
  readonly #snapshot: () => Snapshot
  readonly #upstreams: Upstreams
  readonly #anonymous: PublicReach
  readonly #serverInfo: string
  readonly #kept = new Map<string, { generation: number, version: number, surface: Surface }>()

  /** @param serverInfo the gateway's own, for routes that merge several servers */
  constructor (snapshot: () => Snapshot, upstreams: Upstreams, anonymous: PublicReach, serverInfo: string) {
    this.#snapshot = snapshot
    this.#upstreams = upstreams
    this.#anonymous = anonymous
    this.#serverInfo = serverInfo
  }

  /** What stands between a server's name and its item's. */
  get separator (): string { return this.#snapshot().system.nameSeparator ?? '-' }

  /** The servers that a view reaches now. */
  reached (view: View): VisibleServer[] { return reach(this.#snapshot(), view, this.#anonymous) }

  /** What a view sees now, to a client of this kind. Memoised until a catalogue or the settings change. */
  of (view: View, client: Client): Surface {
    const key = `${view.key}\n${this.#upstreams.catalogueKey(client)}`
    const { generation } = this.#upstreams
    const snapshot = this.#snapshot()
    const known = this.#kept.get(key)
    if (known?.generation === generation && known.version === snapshot.version) return known.surface
    const surface = foldSurface({
      single: view.scope.kind === 'server',
      separator: this.separator,
      reached: this.reached(view).map((each) => ({ ...each, catalogue: this.#upstreams.get(each.server.name)?.catalogue(client) })),
      apps: showsApps(client.capabilities)
    }, known?.surface)
    this.#kept.delete(key)
    this.#kept.set(key, { generation, version: snapshot.version, surface })
    const oldest = this.#kept.size > limits.surfaces ? this.#kept.keys().next().value : undefined
    if (oldest !== undefined) this.#kept.delete(oldest)
    return surface
  }

  /** What a session on this route is told first. Waits for a server that has never been seen. @throws RpcError when a single server is not there */
  async describe (view: View, client: Client): Promise<Description> {
    let surface = this.of(view, client)
    if (surface.capabilities.size < surface.servers.length) {
      await this.#upstreams.learn(surface.servers.filter((name) => !surface.capabilities.has(name)), client, view.scope.kind === 'server')
      surface = this.of(view, client)
    }
    this.mustBeKnown(view, surface)
    // Servers that nobody has seen yet may bring anything: what is not announced now, a client never asks for.
    const unknown = surface.capabilities.size < surface.servers.length || surface.servers.length === 0
    const capabilities = unknown
      ? {
          tools: { listChanged: true },
          prompts: { listChanged: true },
          resources: { listChanged: true, subscribe: true },
          logging: {},
          completions: {},
          ...surface.shown
        }
      : surface.shown
    return { capabilities, serverInfo: surface.serverInfo ?? this.#serverInfo, instructions: surface.instructions }
  }

  /** Finds something in the surface; a name that is not there may be one that this client's kind has not been shown yet. */
  async find<Found> (exchange: Exchange<View>, look: (surface: Surface) => Found | undefined): Promise<Found | undefined> {
    const surface = this.of(exchange.view, exchange.client)
    const found = look(surface)
    if (found !== undefined) return found
    const settled = await this.settled(exchange)
    this.mustBeKnown(exchange.view, settled)
    return settled === surface ? undefined : look(settled)
  }

  /** Finds a tool or prompt by the name that the view shows it under. A server that is still connecting, and whose label the name begins with, is waited for. @throws RpcError -32001 when that was in vain */
  async named (exchange: Exchange<View>, kind: 'tools' | 'prompts', name: string): Promise<Target | undefined> {
    const { view, client } = exchange
    const look = (surface: Surface): Target | undefined => this.byName(view, surface, kind, name)
    const found = await this.find(exchange, look)
    if (found || view.scope.kind === 'server') return found
    const late = this.reached(view).flatMap(({ server, label }) => {
      const upstream = name.startsWith(`${label}${this.separator}`) ? this.#upstreams.get(server.name) : undefined
      return upstream?.status === 'connecting' && !upstream.listed ? [upstream] : []
    })
    if (late.length === 0) return undefined
    await this.#upstreams.learn(late.map((upstream) => upstream.name), client, true)
    const target = look(this.of(view, client))
    const away = late.find(({ status, listed }) => status !== 'connected' && !listed)
    if (target || !away) return target
    throw new RpcError(code.unavailable, `Server ${JSON.stringify(away.name)} is not connected: ${whyNot(away)}`)
  }

  /** Which server a resource is read from, whether it is listed or not. @throws RpcError -32002 */
  async reader (exchange: Exchange<View>): Promise<Target> {
    const { uri } = exchange.params
    if (typeof uri !== 'string') throw new RpcError(code.invalidParams, 'Invalid params: "uri" must be the resource\'s URI')
    const { scope } = exchange.view
    const server = await this.find(exchange, (surface) => this.#reader(exchange.view, surface, uri))
    if (server !== undefined) return { server, key: uri }
    // A single server may read what it does not list; what its operator disabled stays shut.
    if (scope.kind === 'server' && !isHidden(this.of(exchange.view, exchange.client), scope.name, uri)) {
      return { server: scope.name, key: uri }
    }
    throw new RpcError(code.resourceNotFound, `Resource not found: ${uri}`)
  }

  /** Where an exposed name leads; a single server's tools and prompts go by their own names and by those of merged routes. */
  byName (view: View, surface: Surface, kind: 'tools' | 'prompts', name: string): Target | undefined {
    const { targets } = surface.parts[kind]
    const found = targets.get(name)
    if (found || view.scope.kind !== 'server') return found
    const { name: server } = view.scope
    const prefix = `${server}${this.separator}`
    // Merged routes show a long name cut, and it is good here, too.
    return name.startsWith(prefix) && targets.has(name.slice(prefix.length))
      ? targets.get(name.slice(prefix.length))
      : isCut(name) ? [...targets.values()].find(({ key }) => exposedName(server, this.separator, key) === name) : undefined
  }

  /** The surface, once it is known what the servers behind it list to clients like this one. */
  async settled ({ view, client }: Exchange<View>): Promise<Surface> {
    const surface = this.of(view, client)
    await this.#upstreams.learn(surface.servers, client, view.scope.kind === 'server')
    return this.of(view, client)
  }

  /** @throws RpcError when the route's one server is away and nothing is known of it */
  mustBeKnown ({ scope }: View, surface: Surface): void {
    if (scope.kind !== 'server' || surface.capabilities.size > 0) return
    const upstream = this.#upstreams.get(scope.name)
    throw new RpcError(code.unavailable, `Server ${JSON.stringify(scope.name)} is not connected: ${whyNot(upstream)}`)
  }

  /** The server from which a client of a merged route would read a resource now. */
  readerNow (view: View, client: Client, uri: string): string | undefined {
    return view.scope.kind === 'server' ? undefined : this.#reader(view, this.of(view, client), uri)
  }

  /** Whether a resource of a server is one that a client may read; where its server is not known yet, it may be. */
  mayRead (view: View, client: Client, server: string, uri: string): boolean {
    const surface = this.of(view, client)
    if (!surface.capabilities.has(server)) return true
    return view.scope.kind === 'server' ? !isHidden(surface, server, uri) : this.#reader(view, surface, uri) === server
  }

  /** The server that lists a resource or has a template for it, else the one that linked to it, where all of its resources are shown. */
  #reader (view: View, surface: Surface, uri: string): string | undefined {
    const server = readerOf(surface, uri)?.server
    const linked = server === undefined && view.scope.kind !== 'server' ? this.linked.serverOf(uri, view.principal.key) : undefined
    if (linked === undefined || isHidden(surface, linked, uri)) return server
    return this.reached(view).some((each) => each.server.name === linked && (each.member.resources ?? 'all') === 'all') ? linked : undefined
  }
}

/** Why a server cannot be asked now, for its clients. */
const whyNot = (upstream: Upstream | undefined): string =>
  upstream?.status === 'connecting' ? 'it is still connecting' : (upstream?.reason ?? 'it cannot be used as it is configured')
