import type { Exchange, Client } from '../../protocol/exchange.ts'
import type { Provider } from '../../protocol/provider.ts'
import type { Snapshot } from '../../db/store.ts'
import { allListKinds, type ListingHistory } from '../../protocol/lists.ts'
import {
  type View, type PresentationName, type Access, inPresentation, type VisibleServer, withFilter
} from '../settings/index.ts'
import { BoundedMap, evictOldest } from '../base/limits/index.ts'
import { type Surface, buildSurface } from './surface.ts'
import { supportsMcpApps, type ViewSection } from './section.ts'
import { ItemClaimsByServer } from './claims.ts'
import type { ProviderTable } from './providers.ts'
import { Precedence } from './precedence.ts'
import type { HookLists } from './hooks.ts'
import { gatewayLimits } from './limits.ts'

export interface PresentationInput {
  /** The merged surface of the same principal and servers. */
  readonly merged: Surface
  /** The previous surface; lists that are equal are reused from it. */
  readonly before: Surface | undefined
  /** Equal for all views and clients that see the same items. */
  readonly key: string
}

/** A way to present the servers of a view, other than as merged lists. */
export interface Presentation {
  /** Runs the items that the presentation adds. No server may have its name. */
  readonly provider: Provider
  /** Creates the surface of a view. Called when it is not cached, or when catalogues or settings have changed. */
  readonly present: (presented: PresentationInput) => Surface
}

/** Runs a `tools/call` request. @returns the result as JSON text */
export type CallTool = (exchange: Exchange<View>) => Promise<string>

interface CachedSurface {
  readonly generation: number, readonly snapshot: Snapshot, readonly surface: Surface, readonly items: number
}
/** The result of the last call of `Surfaces.of`, cached since each request looks up the same surface several times. */
interface LastSurface extends Omit<CachedSurface, 'items'> { readonly view: View, readonly client: Client }
/** The merged and raw surfaces of one generation and settings snapshot, by view, catalogues and support of MCP Apps. */
interface SharedSurfaces {
  readonly generation: number, readonly snapshot: Snapshot, readonly surfaces: BoundedMap<string, WeakRef<Surface>>
}

/** Builds and caches the surfaces of views. Clients for whom all catalogues are the same share a surface. */
export class Surfaces {
  readonly #access: Pick<Access, 'snapshot' | 'visibleServers'>
  readonly #providers: ProviderTable
  readonly #filters: HookLists['onView']
  readonly #claims = new ItemClaimsByServer()
  readonly #presentations = new Map<PresentationName, Presentation['present']>()
  readonly #cached = new BoundedMap<string, CachedSurface>(gatewayLimits.surfaces)
  #last: LastSurface | undefined
  #shared: SharedSurfaces | undefined

  /** @param filters hooks that hide items */
  constructor (
    access: Pick<Access, 'snapshot' | 'visibleServers'>, providers: ProviderTable, filters: HookLists['onView'] = []
  ) {
    this.#access = access
    this.#providers = providers
    this.#filters = filters
  }

  addPresentation (name: PresentationName, present: Presentation['present']): void {
    this.#presentations.set(name, present)
  }

  /** The separator between a server's name and its items' names on merged routes. */
  get separator (): string { return this.#access.snapshot.system.nameSeparator ?? '-' }

  /** The servers that a view currently includes. */
  visible (view: View): VisibleServer[] { return this.#access.visibleServers(view) }

  /**
   * A view without the items that hooks hide; without hooks, the view itself. The first hook that returns a filter
   * decides.
   * @param address the IP address of the request, if known
   */
  filtered (view: View, address?: string): View {
    if (view.filter !== undefined) return view
    for (const hook of this.#filters) {
      const filter = hook(view, address)
      if (filter !== undefined) return withFilter(view, filter)
    }
    return view
  }

  /** The servers that a view currently includes, with the catalogue of each for this client. */
  sections (view: View, client: Client): ViewSection[] {
    const { filter } = this.filtered(view)
    return this.visible(view).map((each) => {
      const provider = this.#providers.get(each.server.name)
      return { ...each, provider, catalogue: provider?.catalogue(client), filter }
    })
  }

  /** The section of one server; undefined if the view does not include it. */
  section (view: View, client: Client, server: string): ViewSection | undefined {
    return this.sections(view, client).find((each) => each.server.name === server)
  }

  /** The current surface of a view for this client. Cached until a catalogue or the settings change. */
  of (asked: View, client: Client): Surface {
    const view = this.#filters.length === 0 ? asked : this.filtered(asked)
    const { generation } = this.#providers
    const { snapshot } = this.#access
    const last = this.#last
    if (last?.client === client && last.view === view && last.generation === generation && last.snapshot === snapshot) {
      return last.surface
    }
    const surface = this.#of(view, client, generation, snapshot)
    this.#last = { view, client, generation, snapshot, surface }
    return surface
  }

  /** Drops the surfaces of former catalogues and settings, whose lists would keep these in memory. */
  dropStale (): void {
    const { generation } = this.#providers
    const { snapshot } = this.#access
    const isStale = (cached: Pick<CachedSurface, 'generation' | 'snapshot'>): boolean =>
      cached.generation !== generation || cached.snapshot !== snapshot
    for (const [key, cached] of this.#cached) if (isStale(cached)) this.#cached.delete(key)
    if (this.#last && isStale(this.#last)) this.#last = undefined
  }

  #of (view: View, client: Client, generation: number, snapshot: Snapshot): Surface {
    const key = `${view.key}\n${this.#providers.catalogueKey(client)}`
    const known = this.#cached.get(key)
    if (known?.generation === generation && known.snapshot === snapshot) return known.surface
    const present = this.#presentations.get(view.presentation)
    const surface = present
      ? present({ merged: this.of(inPresentation(view, 'merged'), client), before: known?.surface, key })
      : this.#merged(view, client, generation, snapshot, known?.surface)
    this.#cached.setNewest(key, { generation, snapshot, surface, items: countItems(surface) })
    evictOldest(this.#cached, gatewayLimits.surfaceItems, ({ items }) => items, key)
    return surface
  }

  /** The raw or merged surface of a view's servers. Built unless there is one with the same catalogues. */
  #merged (view: View, client: Client, generation: number, snapshot: Snapshot, before: Surface | undefined): Surface {
    if (this.#shared?.generation !== generation || this.#shared.snapshot !== snapshot) {
      this.#shared = { generation, snapshot, surfaces: new BoundedMap(gatewayLimits.surfaces) }
    }
    const { surfaces } = this.#shared
    const sections = this.sections(view, client)
    const supportsApps = supportsMcpApps(client.capabilities)
    const key = `${view.key}\n${supportsApps} ${sections.map(({ catalogue }) => catalogue?.id ?? '').join()}`
    const same = surfaces.get(key)?.deref()
    if (same) return same
    const surface = this.#build(view, sections, supportsApps, before)
    surfaces.set(key, new WeakRef(surface))
    return surface
  }

  #build (view: View, sections: readonly ViewSection[], apps: boolean, before: Surface | undefined): Surface {
    const raw = view.presentation === 'raw'
    if (!raw) for (const section of sections) this.#recordClaims(section)
    return buildSurface({
      isRaw: raw,
      separator: this.separator,
      sections,
      claimsOf: (section) => this.#claimsOf(section),
      supportsApps: apps
    }, before)
  }

  /** Returns an object that decides which of these sections owns a prefixed name (`<label><separator><own name>`). */
  precedence (sections: readonly ViewSection[], separator: string): Precedence {
    for (const section of sections) this.#recordClaims(section)
    return new Precedence(sections, separator, (section) => this.#claimsOf(section))
  }

  #claimsOf ({ server, provider }: ViewSection): ListingHistory {
    return provider?.listingHistory ?? this.#claims.of(server)
  }

  /** Records the claims of a provider that does not record them itself. */
  #recordClaims ({ server, provider, catalogue }: ViewSection): void {
    if (provider?.listingHistory) return
    const catalogues = provider?.catalogues?.() ?? []
    const all = catalogue === undefined || catalogues.includes(catalogue) ? catalogues : [...catalogues, catalogue]
    this.#claims.of(server).record(all)
  }
}

const countItems = ({ parts }: Surface): number => allListKinds.reduce((sum, kind) => sum + parts[kind].targets.size, 0)
