import type { Surface } from '../../gateway/index.ts'
import { shownToolsOf, type ShownTool } from './shown-tools.ts'
import { ToolIndex, type RankedTool, type ToolStore } from './words/index.ts'
import { extensionsLimits } from '../limits.ts'

/** A search index, which all views with the same key share. It is updated incrementally from the views' surfaces. */
export class ViewIndex {
  readonly #index: ToolIndex
  readonly #logError: (error: unknown) => void
  #surface: Surface | undefined
  #tools: ReadonlyMap<string, ShownTool> = new Map()
  #lastUpdate: Promise<void> = Promise.resolve()
  /** The time of the last search, by `performance.now()`. */
  #searchedAt = performance.now()

  /** Whether the index was dropped; it then finds nothing. */
  isClosed = false

  /**
   * @param store where the words are stored
   * @param makeRoom called before words are added to the store, as by `ToolIndex`
   */
  constructor (store: ToolStore, makeRoom: (size: number) => Promise<boolean>, logError: (error: unknown) => void) {
    this.#index = new ToolIndex(store, makeRoom)
    this.#logError = logError
  }

  /** The number of tools. */
  get size (): number { return this.#tools.size }
  /** The memory of the tools' words, in bytes, including what other indexes share. */
  get memory (): number { return this.#index.size }
  /** Whether the index was searched recently. */
  get isInUse (): boolean { return performance.now() - this.#searchedAt < extensionsLimits.smartRouting.inUsePeriod }
  /** The tools that are searched. */
  get tools (): ReadonlyMap<string, ShownTool> { return this.#tools }

  /**
   * Replaces the searched tools by those of a merged surface.
   * @param takeTurn called before tools are added; resolves to a function that is called afterwards
   * @returns resolves when the new tools can be searched, or after an error, which is logged
   */
  update (surface: Surface, takeTurn: () => Promise<() => void>): Promise<void> {
    if (surface === this.#surface) return this.#lastUpdate
    this.#surface = surface
    this.#lastUpdate = this.#lastUpdate.then(async () => {
      // A newer surface has arrived; the next step updates the index to it.
      if (this.#surface !== surface || this.isClosed) return
      const tools = await shownToolsOf(surface, this.#tools)
      if (isSame(this.#tools, tools)) return
      const endTurn = await takeTurn()
      try {
        if (this.isClosed) return
        await this.#index.update([...tools.values()])
        this.#tools = tools
      } finally {
        endTurn()
      }
    }).catch((error: unknown) => {
      // Since the surface is reset, the next search tries again.
      if (this.#surface === surface) this.#surface = undefined
      this.#logError(error)
    })
    return this.#lastUpdate
  }

  /** Drops the tools. @returns resolves when the index holds no words in the store */
  async close (): Promise<void> {
    this.isClosed = true
    await this.#index.update([])
  }

  /** Searches the tools by words. @param explains whether the results include the parts of their scores */
  search (query: string, limit: number, explains = false): RankedTool[] {
    this.#searchedAt = performance.now()
    return this.#index.search(query, limit, explains)
  }

  /** Returns the words of a query. Foreign words are translated; unknown words are followed by the best correction. */
  queryWords (query: string): readonly string[] { return this.#index.queryWords(query) }
}

function isSame (before: ReadonlyMap<string, ShownTool>, after: ReadonlyMap<string, ShownTool>): boolean {
  if (before.size !== after.size) return false
  const others = before.values()
  for (const tool of after.values()) if (others.next().value !== tool) return false
  return true
}
