import { memoized } from '../../../../protocol/memoized.ts'
import { LoopBudget } from '../../../../protocol/yield.ts'
import { analyseTool, weightUnit, type Analysis } from './analysis.ts'
import { loadLexicon, type Lexicon, type Variant } from './lexicon.ts'
import { interpretQuery, type Concept } from './query.ts'
import { Scores } from './scores.ts'
import type { SearchableTool } from './search-tool.ts'
import { ServerNames } from './server-names.ts'
import { tuning } from './tuning.ts'
import { toolSlotOf, Vocabulary, termWeightOf } from './vocabulary.ts'
import { toTermShares, type ScoreExplanation } from './score-explanation.ts'

export type { SearchableTool } from './search-tool.ts'
export type { ScoreExplanation } from './score-explanation.ts'

/**
 * A tool found by words, with its score. `isNamed`: whether the query equals the tool's name; such tools come first.
 * `explanation`: the parts of the score; undefined unless requested.
 */
export interface RankedTool {
  readonly tool: SearchableTool
  readonly score: number
  readonly isNamed: boolean
  readonly explanation?: ScoreExplanation
}

/** A synonym is ignored if it occurs in more than `tools` tools and in more than the share `part` of all tools. */
const common = { tools: 500, part: 0.1 }

/** The analysis of a tool, shared by all indexes. */
const analysisOf = memoized(analyseTool)
const contentOf = (tool: SearchableTool): SearchableTool => tool.content ?? tool

interface IndexedTool { readonly tool: SearchableTool, readonly analysis: Analysis }

/**
 * The word search index of one view's tools. It ranks by BM25F: fields have different weights, and rare words weigh
 * more than common ones. All statistics come from the tools of this index, so that tools outside the view have no
 * influence. docs/search.md describes the ranking.
 */
export class ToolIndex {
  readonly #vocabulary = new Vocabulary()
  readonly #servers = new ServerNames()
  #lexicon: Lexicon | undefined
  readonly #slots: Array<IndexedTool | undefined> = []
  readonly #slotOf = new Map<SearchableTool, number>()
  #freeSlots: number[] = []
  /** The tools that a search may return, with their positions in the list. */
  #searchedTools: ReadonlyMap<SearchableTool, number> = new Map()
  /** The tools of the newest update, in order and without duplicates. */
  #newestTools: readonly SearchableTool[] = []
  /** The tools of the last completed update. */
  #appliedTools = this.#newestTools
  #updating: Promise<void> | undefined

  /**
   * Replaces the searched tools. Only new and changed tools are analysed. Yields to the event loop every few ms.
   * Removed tools are no longer found once this method is called; new tools are found once the promise resolves.
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
      await this.#removeUnwanted()
      if (list !== this.#newestTools) continue
      const budget = new LoopBudget()
      let inserted = 0
      for (const tool of list) {
        if (this.#slotOf.has(tool)) continue
        this.#insert(tool)
        inserted++
        if (budget.isSpent) await budget.yieldToEventLoop()
        if (list !== this.#newestTools) break
      }
      if (inserted > this.#slotOf.size / 4) this.#vocabulary.trim()
      if (list === this.#newestTools) this.#appliedTools = list
    }
  }

  /** Removes the tools that are no longer searched. A new tool with the same content takes over the slot. */
  async #removeUnwanted (): Promise<void> {
    const added = new Map<SearchableTool, SearchableTool>()
    for (const tool of this.#newestTools) if (!this.#slotOf.has(tool)) added.set(contentOf(tool), tool)
    const removedAnalyses = new Map<number, Analysis>()
    for (const [tool, slot] of [...this.#slotOf]) {
      const indexed = this.#slots[slot]
      if (this.#searchedTools.has(tool) || !indexed) continue
      this.#slotOf.delete(tool)
      const same = added.get(contentOf(tool))
      if (same) {
        added.delete(contentOf(tool))
        this.#slotOf.set(same, slot)
        this.#slots[slot] = { tool: same, analysis: indexed.analysis }
        continue
      }
      removedAnalyses.set(slot, indexed.analysis)
      this.#slots[slot] = undefined
      this.#servers.remove(slot, tool.server, indexed.analysis.name)
    }
    if (removedAnalyses.size === 0) return
    await this.#vocabulary.remove(removedAnalyses, this.#slots.length)
    this.#freeSlots.push(...removedAnalyses.keys())
  }

  #insert (tool: SearchableTool): void {
    const analysis = analysisOf(contentOf(tool))
    const slot = this.#freeSlots.pop() ?? this.#slots.length
    this.#slots[slot] = { tool, analysis }
    this.#slotOf.set(tool, slot)
    this.#servers.add(slot, tool.server, analysis.name)
    this.#vocabulary.add(slot, analysis)
  }

  /**
   * Returns the tools that match a query, best first; ties keep the order of the tools. Deterministic.
   * @param query natural language; its first 4,000 characters and 400 words are used
   * @param limit max number of results
   * @param explains whether the results include the parts of their scores
   */
  search (query: string, limit: number, explains = false): RankedTool[] {
    if (!this.#lexicon || limit < 1) return []
    const { concepts } = interpretQuery(query, this.#lexicon, this.#vocabulary)
    const scores = this.#score(concepts)
    for (const slot of this.#namedServerSlots(concepts)) scores.scale(slot, tuning.server)
    const queryWeights = weightsInQuery(concepts)
    const exact = query.trim()
    const found: RankedTool[] = []
    for (const slot of scores.best(limit * 2 + 50)) {
      const tool = this.#slots[slot]?.tool
      if (!tool || !this.#searchedTools.has(tool)) continue
      scores.scale(slot, 1 + tuning.name.whole * this.#namePart(slot, tool.server, queryWeights))
      found.push({ tool, score: scores.of(slot), isNamed: tool.name === exact || tool.ownName === exact })
    }
    const place = ({ tool }: RankedTool): number => this.#searchedTools.get(tool) ?? 0
    const best = found
      .sort((a, b) => Number(b.isNamed) - Number(a.isNamed) || b.score - a.score || place(a) - place(b))
      .slice(0, limit)
    if (!explains) return best
    return best.map((each) => ({ ...each, explanation: this.#explain(each, concepts, queryWeights) }))
  }

  #explain (
    { tool, isNamed }: RankedTool, concepts: readonly Concept[], queryWeights: ReadonlyMap<string, number>
  ): ScoreExplanation {
    const slot = this.#slotOf.get(tool) ?? -1
    const wordOf = (term = ''): string => this.#vocabulary.get(term)?.word ?? term
    const terms = concepts.flatMap((concept) => {
      const offers = this.#termsOf(concept).flatMap(({ term, factor }) => {
        const place = this.#vocabulary.get(term)?.places.find((each) => toolSlotOf(each) === slot)
        return place === undefined ? [] : [{ term, score: factor * saturatedWeight(place) }]
      })
      const [best] = offers.sort((one, other) => other.score - one.score)
      const first = concept.variants[0]?.term
      if (!best) return []
      return [{ word: wordOf(best.term), ...first !== best.term && { asked: wordOf(first) }, score: best.score }]
    })
    return {
      terms: toTermShares(terms),
      name: this.#namePart(slot, tool.server, queryWeights),
      isNamed
    }
  }

  #namedServerSlots (concepts: readonly Concept[]): Set<number> {
    const terms = concepts.filter(({ weight }) => weight >= 0.5).flatMap(({ variants }) =>
      variants.filter(({ weight }) => weight >= 0.8).map(({ term }) => term))
    return this.#servers.namedBy(terms, (term) => this.#vocabulary.get(term)?.places.length ?? 0)
  }

  #score (concepts: readonly Concept[]): Scores {
    const scores = new Scores(this.#slots.length)
    const total = concepts.reduce((sum, { weight }) => sum + weight, 0)
    for (const concept of concepts) {
      for (const { term, factor } of this.#termsOf(concept)) {
        for (const place of this.#vocabulary.get(term)?.places ?? []) {
          scores.offer(toolSlotOf(place), factor * saturatedWeight(place))
        }
      }
      scores.endRound(concept.weight * tuning.coverage / total)
    }
    scores.applyCoverage(1 - tuning.coverage)
    return scores
  }

  /**
   * Returns the terms of a concept: the first term, and the others that are not too frequent. `factor`: the factor for
   * the term's saturated weight in a tool.
   */
  #termsOf ({ weight, variants }: Concept): Array<{ term: string, factor: number }> {
    const [first] = variants
    const highest = first && first.weight > 0.75 ? this.#rarityOf(first.term, variants) : Infinity
    return variants.filter((variant) => variant === first || !this.#isCommon(variant.term))
      .map(({ term, weight: own }) => ({ term, factor: weight * own * Math.min(highest, this.#rarity(term)) }))
  }

  /** Returns the inverse document frequency of a term (IDF of BM25). */
  #rarity (term: string): number {
    const count = this.#slotOf.size
    const places = Math.min(count, Math.max(tuning.rarity.least, this.#vocabulary.get(term)?.places.length ?? 0))
    return Math.log(1 + (count - places + 0.5) / (places + 0.5))
  }

  /** Returns the IDF of a term, moved towards the IDF of its most frequent synonym. */
  #rarityOf (term: string, variants: readonly Variant[]): number {
    const own = this.#rarity(term)
    let least = own
    for (const { term, weight } of variants) if (weight >= 0.3) least = Math.min(least, this.#rarity(term))
    return own + tuning.rarity.ofSynonyms * (least - own)
  }

  /**
   * Returns the share of a tool's name that the query mentions, from 0 to 1. Words that are in most tool names of the
   * same server are ignored.
   */
  #namePart (slot: number, server: string, queryWeights: ReadonlyMap<string, number>): number {
    let [all, part] = [0, 0]
    for (const term of this.#slots[slot]?.analysis.name ?? []) {
      if (this.#servers.isUsual(term, server)) continue
      const weight =
        tuning.name.base + Math.log(1 + this.#slotOf.size / (1 + (this.#vocabulary.get(term)?.places.length ?? 0)))
      all += weight
      part += weight * (queryWeights.get(term) ?? 0)
    }
    return all > 0 ? part / all : 0
  }

  /** Whether a synonym is too frequent to be useful; such synonyms would take most of the search time. */
  #isCommon (term: string): boolean {
    return (this.#vocabulary.get(term)?.places.length ?? 0) > Math.max(common.tools, this.#slotOf.size * common.part)
  }

  /** Returns the words of a query. Foreign words are translated; unknown words are followed by the best correction. */
  queryWords (query: string): readonly string[] {
    return this.#lexicon ? interpretQuery(query, this.#lexicon, this.#vocabulary).words : []
  }
}

/** Returns the weight of a term in a tool, with saturation (BM25). @param place a place of the `Vocabulary` */
function saturatedWeight (place: number): number {
  const amount = termWeightOf(place) / weightUnit
  return amount * (tuning.saturation + 1) / (amount + tuning.saturation)
}

/** Returns the weight from 0 to 1 with which each term of a query counts when it occurs in the name of a tool. */
function weightsInQuery (concepts: readonly Concept[]): Map<string, number> {
  const terms = new Map<string, number>()
  for (const { weight, variants } of concepts) {
    for (const variant of variants) {
      const termWeight = Math.min(1, weight) * variant.weight ** tuning.name.exponent
      if (termWeight > (terms.get(variant.term) ?? 0)) terms.set(variant.term, termWeight)
    }
  }
  return terms
}
