import type { Snapshot } from '../../db/store.ts'
import type { Client } from '../../protocol/exchange.ts'
import { kinds, type ListingHistory } from '../../protocol/lists.ts'
import type { Access } from '../access/index.ts'
import { inPresentation, type Presentation as PresentationName, type View } from '../access/view.ts'
import type { VisibleServer } from '../access/visibility.ts'
import { BoundedMap, shrink } from '../limits/bounded-map.ts'
import { limits } from '../limits/index.ts'
import { showsApps } from './apps.ts'
import { ClaimsByServer } from './claims.ts'
import type { Presentation } from './presentation.ts'
import type { Providers } from './providers.ts'
import type { Section } from './section.ts'
import { foldSurface, type Surface } from './surface.ts'

interface KeptSurface { readonly generation: number, readonly snapshot: Snapshot, readonly surface: Surface }
/** The result of the last look-up, with its arguments: one request looks up the same surface more than once. */
interface LastSurface extends KeptSurface { readonly view: View, readonly client: Client }

/** The surfaces of all views, each folded once per generation of catalogues and settings. */
export class Surfaces {
  readonly #access: Pick<Access, 'snapshot' | 'visible'>
  readonly #providers: Providers
  readonly #claims = new ClaimsByServer()
  readonly #presentations = new Map<PresentationName, Presentation['present']>()
  readonly #kept = new BoundedMap<string, KeptSurface>(limits.surfaces)
  #last: LastSurface | undefined

  constructor (access: Pick<Access, 'snapshot' | 'visible'>, providers: Providers) {
    this.#access = access
    this.#providers = providers
  }

  /** Adds a way of showing what a view sees, made of its merged surface. */
  addPresentation (name: PresentationName, present: Presentation['present']): void { this.#presentations.set(name, present) }

  /** The text between a server's name and its items' names on merged routes. */
  get separator (): string { return this.#access.snapshot.system.nameSeparator ?? '-' }

  /** The servers that a view sees now. */
  visible (view: View): VisibleServer[] { return this.#access.visible(view) }

  /** The servers that a view sees now, with the catalogue of each for this client. Not folded: items have their own names. */
  sections (view: View, client: Client): Section[] {
    return this.visible(view).map((each) => {
      const provider = this.#providers.get(each.server.name)
      return { ...each, provider, catalogue: provider?.catalogue(client) }
    })
  }

  /** The surface of a view for this client now. Memoised until a catalogue or the settings change. */
  of (view: View, client: Client): Surface {
    const { generation } = this.#providers
    const { snapshot } = this.#access
    const last = this.#last
    if (last?.client === client && last.view === view && last.generation === generation && last.snapshot === snapshot) return last.surface
    const surface = this.#of(view, client, generation, snapshot)
    this.#last = { view, client, generation, snapshot, surface }
    return surface
  }

  #of (view: View, client: Client, generation: number, snapshot: Snapshot): Surface {
    const key = `${view.key}\n${this.#providers.catalogueKey(client)}`
    const known = this.#kept.get(key)
    if (known?.generation === generation && known.snapshot === snapshot) return known.surface
    const present = this.#presentations.get(view.presentation)
    const surface = present
      ? present({ merged: this.of(inPresentation(view, 'merged'), client), before: known?.surface, key })
      : this.#fold(view, client, known?.surface)
    this.#kept.setNewest(key, { generation, snapshot, surface })
    shrink(this.#kept, limits.surfaceItems, ({ surface }) => itemsOf(surface), key)
    return surface
  }

  #fold (view: View, client: Client, before: Surface | undefined): Surface {
    const sections = this.sections(view, client)
    const raw = view.presentation === 'raw'
    if (!raw) for (const section of sections) this.#note(section)
    return foldSurface({
      raw,
      separator: this.separator,
      sections,
      claimsOf: (section) => this.#claimsOf(section),
      apps: showsApps(client.capabilities)
    }, before)
  }

  #claimsOf ({ server, provider }: Section): ListingHistory { return provider?.claims ?? this.#claims.of(server) }

  /** Notes what a provider that keeps no claims itself lists to any class of clients. */
  #note ({ server, provider, catalogue }: Section): void {
    if (provider?.claims) return
    const catalogues = provider?.catalogues?.() ?? []
    const all = catalogue === undefined || catalogues.includes(catalogue) ? catalogues : [...catalogues, catalogue]
    this.#claims.of(server).note(all)
  }
}

const itemsOf = ({ parts }: Surface): number => kinds.reduce((sum, kind) => sum + parts[kind].targets.size, 0)
