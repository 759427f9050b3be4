import type { Surface } from '../../gateway/index.ts'
import { BoundedMap, evictOldest } from '../../base/limits/index.ts'
import { ViewIndex } from './view-index.ts'
import { extensionsLimits } from '../limits.ts'

/** The search indexes of views, by view key. If there are too many, the least recently used ones are dropped. */
export class ViewIndexes {
  readonly #indexes = new BoundedMap<string, ViewIndex>(extensionsLimits.smartRouting.indexes)
  readonly #logError: (error: unknown) => void

  constructor (logError: (error: unknown) => void) {
    this.#logError = logError
  }

  /**
   * Whether to update the index of a view before its next search: if it was searched recently, or if there is none and
   * there is room for another one. Without room, views would evict each other's indexes before they are searched.
   * @param key the key of the view
   */
  shouldUpdateEarly (key: string): boolean {
    const index = this.#indexes.get(key)
    if (index) return index.isInUse
    const { indexes, tools } = extensionsLimits.smartRouting
    let size = 0
    for (const other of this.#indexes.values()) size += other.size
    return this.#indexes.size < indexes && size < tools / 2
  }

  get all (): Iterable<ViewIndex> { return this.#indexes.values() }

  /**
   * Returns the index of a view, which is created if needed, and starts to update it to the merged surface.
   * @param key the key of the view
   */
  update (key: string, surface: Surface): { index: ViewIndex, updated: Promise<void> } {
    const index = this.#indexes.get(key) ?? new ViewIndex(this.#logError)
    const updated = index.update(surface)
    this.#indexes.setNewest(key, index)
    evictOldest(this.#indexes, extensionsLimits.smartRouting.tools, ({ size }) => size, key)
    return { index, updated }
  }
}
