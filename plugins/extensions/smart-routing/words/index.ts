import { LoopBudget } from '../../../../protocol/yield.ts'
import { loadLexicon, type Lexicon } from './lexicon.ts'
import { interpretQuery } from './query.ts'
import { WordSearch, type IndexedTools, type RankedTool } from './search.ts'
import type { SearchableTool } from './search-tool.ts'
import { ServerNames } from './server-names.ts'
import { ToolStore } from './tool-store.ts'
import type { ShownVocabulary } from './vocabulary.ts'

export type { RankedTool } from './search.ts'
export type { SearchableTool } from './search-tool.ts'
export type { ScoreExplanation } from './score-explanation.ts'
export { ToolStore } from './tool-store.ts'

const noTools = (): IndexedTools =>
  ({ tools: [], slots: [], names: [], ranks: new Uint32Array(), servers: new ServerNames() })

/**
 * The word search index of one view's tools. It ranks by BM25F: fields have different weights, and rare words weigh
 * more than common ones. All statistics come from the tools of this index, so that tools outside the view have no
 * influence. docs/search.md describes the ranking.
 */
export class ToolIndex {
  readonly #store: ToolStore
  readonly #makeRoom: (size: number) => Promise<boolean>
  #lexicon: Lexicon | undefined
  #indexed = noTools()
  #size = 0
  /** The tools that a search may return, with their positions in the list. */
  #searchedTools: ReadonlyMap<SearchableTool, number> = new Map()
  /** The tools of the newest update, in order and without duplicates. */
  #newestTools: readonly SearchableTool[] = []
  /** The tools of the last completed update. */
  #appliedTools = this.#newestTools
  #updating: Promise<void> | undefined

  /**
   * @param store where the words are stored; indexes may share it
   * @param makeRoom called before the words of a tool are added to the store, with the size of this index; resolves to
   * false if they must not be added
   */
  constructor (store = new ToolStore(), makeRoom: (size: number) => Promise<boolean> = async () => true) {
    this.#store = store
    this.#makeRoom = makeRoom
  }

  /** The memory of the words of the tools, in bytes, including what other indexes share. */
  get size (): number { return this.#size }

  /**
   * Replaces the searched tools. Only tools that are not in the store are analysed. Yields to the event loop every few
   * ms. Removed tools are no longer found once this method is called; new tools are found once the promise resolves.
   */
  async update (tools: readonly SearchableTool[]): Promise<void> {
    this.#newestTools = [...new Set(tools)]
    this.#searchedTools = new Map(this.#newestTools.map((tool, place) => [tool, place]))
    while (this.#appliedTools !== this.#newestTools) {
      this.#updating ??= this.#apply().finally(() => { this.#updating = undefined })
      await this.#updating
    }
  }

  async #apply (): Promise<void> {
    this.#lexicon ??= await loadLexicon()
    while (this.#appliedTools !== this.#newestTools) {
      const list = this.#newestTools
      const slots: number[] = []
      let released: readonly number[] = slots
      try {
        const indexed = await this.#take(list, slots)
        if (list !== this.#newestTools) continue
        released = this.#indexed.slots
        this.#indexed = indexed
        this.#appliedTools = list
      } finally {
        this.#store.release(released)
      }
    }
  }

  /** Takes tools from the store. @param slots receives the slots that were taken @returns incomplete if outdated */
  async #take (list: readonly SearchableTool[], slots: number[]): Promise<IndexedTools> {
    const tools: SearchableTool[] = []
    const names: Array<readonly string[]> = []
    const servers = new ServerNames()
    const taken = new Set<SearchableTool>()
    const budget = new LoopBudget()
    const before = this.#store.slots
    this.#size = 0
    let added = 0
    for (const tool of list) {
      if (list !== this.#newestTools) break
      // Two tools with the same content need two slots.
      const content = tool.content === undefined || taken.has(tool.content) ? tool : tool.content
      if (!this.#store.has(content)) {
        if (!await this.#makeRoom(this.#size)) continue
        added++
      }
      const slot = this.#store.take(content)
      taken.add(content)
      slots.push(slot)
      this.#size += this.#store.sizeAt(slot)
      const name = this.#store.nameAt(slot)
      names.push(name)
      servers.add(tools.push(tool) - 1, tool.server, name)
      if (budget.isSpent) await budget.yieldToEventLoop()
    }
    if (added > before / 4) await this.#store.vocabulary.trim()
    const ranks = new Uint32Array(this.#store.slots)
    for (const [position, slot] of slots.entries()) ranks[slot] = position + 1
    return { tools, slots, ranks, servers, names }
  }

  /**
   * Returns the tools that match a query, best first; ties keep the order of the tools. Deterministic.
   * @param query natural language; its first 4,000 characters and 400 words are used
   * @param limit max number of results
   * @param explains whether the results include the parts of their scores
   */
  search (query: string, limit: number, explains = false): RankedTool[] {
    if (!this.#lexicon || limit < 1) return []
    return new WordSearch(this.#indexed, this.#vocabulary, this.#lexicon, this.#searchedTools)
      .run(query, limit, explains)
  }

  /** Returns the words of a query. Foreign words are translated; unknown words are followed by the best correction. */
  queryWords (query: string): readonly string[] {
    return this.#lexicon ? interpretQuery(query, this.#lexicon, this.#vocabulary).words : []
  }

  get #vocabulary (): ShownVocabulary { return this.#store.vocabulary.shownTo(this.#indexed.ranks) }
}
