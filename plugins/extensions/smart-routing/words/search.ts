import type { Lexicon, Variant } from './lexicon.ts'
import { interpretQuery, type Concept } from './query.ts'
import { Scores } from './scores.ts'
import type { SearchableTool } from './search-tool.ts'
import type { ServerNames } from './server-names.ts'
import { toTermShares, type ScoreExplanation } from './score-explanation.ts'
import { tuning } from './tuning.ts'
import { weightUnit } from './analysis.ts'
import { termWeightOf, toolSlotOf, type ShownVocabulary } from './vocabulary.ts'

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

/** The tools of one view that can be searched, in the order of the view. */
export interface IndexedTools {
  readonly tools: readonly SearchableTool[]
  /** The slot of each tool in the `ToolStore`. */
  readonly slots: readonly number[]
  /** The terms of each tool's name. */
  readonly names: ReadonlyArray<readonly string[]>
  /** For each slot, 1 + the position of its tool in `tools`; 0 if the view does not have it. */
  readonly ranks: Uint32Array
  /** The servers of the tools, with the positions of the tools. */
  readonly servers: ServerNames
}

/** One search in the tools of a view. */
export class WordSearch {
  readonly #indexed: IndexedTools
  readonly #vocabulary: ShownVocabulary
  readonly #lexicon: Lexicon
  readonly #places: ReadonlyMap<SearchableTool, number>

  /** @param places the tools that may be returned, with their places among tools with equal scores */
  constructor (
    indexed: IndexedTools, vocabulary: ShownVocabulary, lexicon: Lexicon, places: ReadonlyMap<SearchableTool, number>
  ) {
    this.#indexed = indexed
    this.#vocabulary = vocabulary
    this.#lexicon = lexicon
    this.#places = places
  }

  /**
   * Returns the tools that match a query, best first; ties keep the order of the tools. Deterministic.
   * @param query natural language; its first 4,000 characters and 400 words are used
   * @param limit max number of results
   * @param explains whether the results include the parts of their scores
   */
  run (query: string, limit: number, explains: boolean): RankedTool[] {
    const { concepts } = interpretQuery(query, this.#lexicon, this.#vocabulary)
    const scores = this.#score(concepts)
    for (const slot of this.#namedServerSlots(concepts)) scores.scale(slot, tuning.server)
    const queryWeights = weightsInQuery(concepts)
    const exact = query.trim()
    const found: RankedTool[] = []
    for (const slot of scores.best(limit * 2 + 50)) {
      const tool = this.#indexed.tools[slot]
      if (!tool || !this.#places.has(tool)) continue
      scores.scale(slot, 1 + tuning.name.whole * this.#namePart(slot, tool.server, queryWeights))
      found.push({ tool, score: scores.of(slot), isNamed: tool.name === exact || tool.ownName === exact })
    }
    const place = ({ tool }: RankedTool): number => this.#places.get(tool) ?? 0
    const best = found
      .sort((a, b) => Number(b.isNamed) - Number(a.isNamed) || b.score - a.score || place(a) - place(b))
      .slice(0, limit)
    if (!explains) return best
    return best.map((each) => ({ ...each, explanation: this.#explain(each, concepts, queryWeights) }))
  }

  #explain (
    { tool, isNamed }: RankedTool, concepts: readonly Concept[], queryWeights: ReadonlyMap<string, number>
  ): ScoreExplanation {
    const slot = this.#indexed.tools.indexOf(tool)
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
    return this.#indexed.servers.namedBy(terms, (term) => this.#countOf(term))
  }

  #score (concepts: readonly Concept[]): Scores {
    const scores = new Scores(this.#indexed.tools.length)
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

  /** Returns the number of tools with a term. */
  #countOf (term: string): number { return this.#vocabulary.get(term)?.places.length ?? 0 }

  /** Returns the inverse document frequency of a term (IDF of BM25). */
  #rarity (term: string): number {
    const count = this.#indexed.tools.length
    const places = Math.min(count, Math.max(tuning.rarity.least, this.#countOf(term)))
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
    for (const term of this.#indexed.names[slot] ?? []) {
      if (this.#indexed.servers.isUsual(term, server)) continue
      const weight =
        tuning.name.base + Math.log(1 + this.#indexed.tools.length / (1 + this.#countOf(term)))
      all += weight
      part += weight * (queryWeights.get(term) ?? 0)
    }
    return all > 0 ? part / all : 0
  }

  /** Whether a synonym is too frequent to be useful; such synonyms would take most of the search time. */
  #isCommon (term: string): boolean {
    return this.#countOf(term) > Math.max(common.tools, this.#indexed.tools.length * common.part)
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
