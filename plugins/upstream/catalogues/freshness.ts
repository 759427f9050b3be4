import { remainingFreshness, staleAt, type Caching, type Freshness } from '../../../protocol/caching.ts'
import type { ServerCapabilities } from '../../../protocol/capabilities.ts'
import type { Catalogue, ListKind } from '../../../protocol/lists.ts'
import { gatewayLimits } from '../../gateway/index.ts'

/** How long, and from which time on, catalogues may be cached according to their server. */
export class CatalogueFreshness {
  readonly #known = new WeakMap<Catalogue, Freshness>()

  set (catalogue: Catalogue, fresh: Freshness): void { this.#known.set(catalogue, fresh) }

  /** Records that catalogues were found unchanged. @param learnedAt in ms since the epoch */
  renew (catalogues: readonly Catalogue[], learnedAt: number): void {
    for (const catalogue of catalogues) Object.assign(this.#known.get(catalogue) ?? {}, { learnedAt })
  }

  /**
   * Returns how long a list of a catalogue may still be cached; undefined if the server does not state it.
   * @param isChanging whether the list is about to be read again: then it may not be cached
   */
  caching (catalogue: Catalogue, kind: ListKind, isChanging: boolean): Caching | undefined {
    const fresh = this.#known.get(catalogue)
    const stated = fresh?.lists[kind]
    if (!fresh || !stated) return undefined
    return {
      ...stated,
      ttlMs: isChanging ? 0 : remainingFreshness(stated.ttlMs, fresh.learnedAt, Date.now(), gatewayLimits.freshLists)
    }
  }

  /** Returns when a catalogue expires, in ms since the epoch; Infinity if the server does not state it. */
  expiry (catalogue: Catalogue | undefined, capabilities: ServerCapabilities): number {
    const fresh = catalogue && this.#known.get(catalogue)
    return fresh ? staleAt(fresh, capabilities, gatewayLimits.freshLists) : Infinity
  }
}
