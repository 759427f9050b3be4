import type { Surface } from '../../gateway/index.ts'
import { BoundedMap, evictOldest } from '../../base/limits/index.ts'
import { ViewIndex } from './view-index.ts'
import { extensionsLimits } from '../limits.ts'

/** The indexes of all views, by their keys. */
export class Indexes {
  readonly #indexes = new BoundedMap<string, ViewIndex>(extensionsLimits.smartRouting.indexes)
  readonly #logError: (error: unknown) => void

  constructor (logError: (error: unknown) => void) {
    this.#logError = logError
  }

  /**
   * Whether the index of a view is worth bringing up to date before somebody searches: there is one that is in use, or
   * room for one. Where many views take turns, each would be built for nothing.
   */
  keeps (key: string): boolean {
    const index = this.#indexes.get(key)
    if (index) return index.isInUse
    const { indexes, tools } = extensionsLimits.smartRouting
    let size = 0
    for (const other of this.#indexes.values()) size += other.size
    return this.#indexes.size < indexes && size < tools / 2
  }

  /** All of them. */
  get all (): Iterable<ViewIndex> { return this.#indexes.values() }

  /** The index of a view, which follows its merged surface. @param key of the view */
  of (key: string, surface: Surface): { index: ViewIndex, updated: Promise<void> } {
    const index = this.#indexes.get(key) ?? new ViewIndex(this.#logError)
    const updated = index.follow(surface)
    this.#indexes.setNewest(key, index)
    evictOldest(this.#indexes, extensionsLimits.smartRouting.tools, ({ size }) => size, key)
    return { index, updated }
  }
}
