import type { Surface } from '../gateway/surface.ts'
import { BoundedMap } from '../limits/bounded-map.ts'
import { limits } from '../limits/index.ts'
import { ViewIndex } from './view-index.ts'

/** The indexes of all views, by their keys. */
export class Indexes {
  readonly #indexes = new BoundedMap<string, ViewIndex>(limits.smartRouting.indexes)
  readonly #logError: (error: unknown) => void

  constructor (logError: (error: unknown) => void) {
    this.#logError = logError
  }

  /**
   * Whether the index of a view is worth bringing up to date before somebody searches: there is one, or room for one. Where many views
   * take turns, each would be built for nothing.
   */
  keeps (key: string): boolean { return this.#indexes.has(key) || this.#indexes.size < limits.smartRouting.indexes }

  /** All of them. */
  get all (): Iterable<ViewIndex> { return this.#indexes.values() }

  /** The index of a view, which follows its merged surface. @param key of the view */
  of (key: string, surface: Surface): { index: ViewIndex, updated: Promise<void> } {
    const index = this.#indexes.get(key) ?? new ViewIndex(this.#logError)
    const updated = index.follow(surface)
    this.#indexes.setNewest(key, index)
    this.#shrink(index)
    return { index, updated }
  }

  /** Drops those that were used longest ago, as long as there are too many tools in all of them. */
  #shrink (used: ViewIndex): void {
    let tools = 0
    for (const { size } of this.#indexes.values()) tools += size
    for (const [key, index] of this.#indexes) {
      if (tools <= limits.smartRouting.tools) return
      if (index === used) continue
      this.#indexes.delete(key)
      tools -= index.size
    }
  }
}
