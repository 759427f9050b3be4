import type { Surface } from '../../gateway/index.ts'
import { Semaphore } from '../../base/limits/index.ts'
import { ViewIndex } from './view-index.ts'
import { ToolStore } from './words/index.ts'
import { extensionsLimits } from '../limits.ts'

/** The index of a view. `owner`: the caller who searched it last; empty if nobody has. */
interface OwnedIndex { readonly index: ViewIndex, readonly owner: string }

/**
 * The search indexes of views, by view key, which share the words of their tools. If there are too many, indexes of the
 * owner whose indexes are largest are dropped, the least recently used first.
 */
export class ViewIndexes {
  /** The indexes, the least recently used first. */
  readonly #indexes = new Map<string, OwnedIndex>()
  readonly #logError: (error: unknown) => void
  readonly #store = new ToolStore()
  /** Admits one update at a time: several that grow together would exceed the bound together. */
  readonly #turns = new Semaphore({ places: 1 })

  constructor (logError: (error: unknown) => void) {
    this.#logError = logError
  }

  /**
   * Whether to update the index of a view before its next search: if it was searched recently, or if there is none and
   * there is room for another one. Without room, views would evict each other's indexes before they are searched.
   * @param key the key of the view
   */
  shouldUpdateEarly (key: string): boolean {
    const known = this.#indexes.get(key)
    if (known) return known.index.isInUse
    const { indexes, tools, size } = extensionsLimits.smartRouting
    return this.#indexes.size < indexes && this.#tools < tools / 2 && this.#store.size < size / 2
  }

  get all (): Iterable<ViewIndex> { return [...this.#indexes.values()].map(({ index }) => index) }

  /** The memory of the words of all tools, in bytes. */
  get memory (): number { return this.#store.size }

  /** The number of tools in all indexes together. */
  get #tools (): number {
    let count = 0
    for (const { index } of this.#indexes.values()) count += index.size
    return count
  }

  /**
   * Returns the index of a view, which is created if needed, and starts to update it to the merged surface.
   * @param key the key of the view
   * @param owner the owner of the search; by default, the former one
   */
  update (key: string, surface: Surface, owner?: string): { index: ViewIndex, updated: Promise<void> } {
    const known = this.#indexes.get(key)
    const entry = {
      index: known?.index ?? new ViewIndex(this.#store, async (own) => await this.#makeRoom(key, own), this.#logError),
      owner: owner ?? known?.owner ?? ''
    }
    this.#indexes.delete(key)
    this.#indexes.set(key, entry)
    const { indexes, tools } = extensionsLimits.smartRouting
    while (this.#indexes.size > indexes || this.#tools > tools) if (!this.#drop(key)) break
    return { index: entry.index, updated: entry.index.update(surface, async () => await this.#turns.take(entry.owner)) }
  }

  /** Drops indexes to make room for one. @param own the memory of its words @returns false if there is no room */
  async #makeRoom (key: string, own: number): Promise<boolean> {
    const { size } = extensionsLimits.smartRouting
    while (this.#store.size > size) {
      const dropped = own < size / 2 ? this.#drop(key, 1) : undefined
      if (!dropped) return false
      await dropped
      await this.#store.sweep()
    }
    return true
  }

  /**
   * Drops the oldest index of the owner whose indexes are largest.
   * @param kept the key of an index that stays
   * @param least the min memory of the dropped index
   * @returns undefined if there is none
   */
  #drop (kept: string, least = 0): Promise<void> | undefined {
    const sizes = new Map<string, number>()
    for (const { index, owner } of this.#indexes.values()) {
      sizes.set(owner, (sizes.get(owner) ?? 0) + index.memory)
    }
    let largest: [string, OwnedIndex] | undefined
    for (const each of this.#indexes) {
      if (each[0] === kept || each[1].index.memory < least) continue
      if (!largest || (sizes.get(each[1].owner) ?? 0) > (sizes.get(largest[1].owner) ?? 0)) largest = each
    }
    if (!largest) return undefined
    this.#indexes.delete(largest[0])
    return largest[1].index.close()
  }
}
