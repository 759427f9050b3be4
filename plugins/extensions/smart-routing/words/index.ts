import { LoopBudget } from '../../../../protocol/yield.ts'
import { analyse, unit, type Analysis } from './analysis.ts'
import type { Concept } from './concepts.ts'
import { loadLexicon } from './load-lexicon.ts'
import type { Lexicon, Variant } from './lexicon.ts'
import { isContrary, purposeOf } from './purpose.ts'
import { Interpreter } from './question.ts'
import { Scores } from './scores.ts'
import type { SearchTool } from './search-tool.ts'
import { ServerHints } from './server-hints.ts'
import { tuning } from './tuning.ts'
import { slotOf, Vocabulary, placeWeight } from './vocabulary.ts'

export type { SearchTool } from './search-tool.ts'

export interface Ranked { readonly tool: SearchTool, readonly score: number }

/** Synonyms that are in more tools, and in more than this part of all, do not count. */
const common = { tools: 500, part: 0.1 }
/** Added to the score of the tool whose name the question is. */
const named = 1_000

/** Analyses, shared by all indexes. */
const analyses = new WeakMap<SearchTool, Analysis>()

interface Indexed { readonly tool: SearchTool, readonly analysis: Analysis }

/**
 * What is searched by words: one view's tools. Each weighs by BM25F: fields count differently, rare words more than
 * common ones. All statistics are those of these tools, so that others influence nothing. docs/search.md describes the
 * ranking.
 */
export class ToolIndex {
  readonly #vocabulary = new Vocabulary()
  readonly #hints = new ServerHints()
  #lexicon: Lexicon | undefined
  #interpreter: Interpreter | undefined
  /** What is indexed, by slot. */
  readonly #slots: Array<Indexed | undefined> = []
  readonly #slotOf = new Map<SearchTool, number>()
  #free: number[] = []
  /** The tools that may be found, with their places in the list. */
  readonly #wanted = new Map<SearchTool, number>()
  /** These in order, each once. */
  #asked: readonly SearchTool[] = []
  /** Those that are indexed, after the last update that was not overtaken by another. */
  #applied = this.#asked
  /** What is indexed, in order; undefined after an update that was overtaken. */
  #list: readonly SearchTool[] | undefined
  #updating: Promise<void> | undefined

  /**
   * Makes these the tools that are searched. Only what changed is analysed; it yields to the event loop every few ms.
   * What is not among them is not found from now on; what is new is found when the promise resolves.
   */
  async update (tools: readonly SearchTool[]): Promise<void> {
    this.#want(tools)
    while (this.#applied !== this.#asked) {
      this.#updating ??= this.#apply().finally(() => { this.#updating = undefined })
      await this.#updating
    }
  }

  /**
   * Writes down the places of all; only of those that stand at other tools' places, if the others are where they were.
   */
  #want (tools: readonly SearchTool[]): void {
    const before = this.#asked
    const fresh = before.length === tools.length ? differing(tools, before) : tools
    const isPatch = before.length === tools.length && new Set(fresh).size === fresh.length &&
      !fresh.some((tool) => this.#wanted.has(tool))
    this.#asked = isPatch ? tools.slice() : [...new Set(tools)]
    if (!isPatch) this.#wanted.clear()
    for (const [place, tool] of this.#asked.entries()) {
      const old = before[place]
      if (isPatch && old === tool) continue
      if (isPatch && old) this.#wanted.delete(old)
      this.#wanted.set(tool, place)
    }
  }

  async #apply (): Promise<void> {
    this.#lexicon ??= await loadLexicon()
    this.#interpreter ??= new Interpreter(this.#lexicon, this.#vocabulary)
    while (this.#applied !== this.#asked) {
      const list = this.#asked
      const before = this.#list
      // What stands where it stood needs no look-up.
      const [former, next] = before ? [differing(before, list), differing(list, before)] : [this.#slotOf.keys(), list]
      this.#list = undefined
      this.#removeUnwanted(former)
      const budget = new LoopBudget()
      let inserted = 0
      for (const tool of next) {
        if (this.#slotOf.has(tool)) continue
        this.#insert(tool, this.#lexicon)
        inserted++
        if (budget.isSpent) await budget.yieldToEventLoop()
        if (list !== this.#asked) break
      }
      if (inserted > this.#slotOf.size / 4) this.#vocabulary.trim()
      if (list !== this.#asked) continue
      this.#applied = list
      this.#list = list
    }
  }

  /** Removes those of some tools that are not wanted. */
  #removeUnwanted (former: Iterable<SearchTool>): void {
    const gone = new Map<number, Analysis>()
    for (const tool of former) {
      const slot = this.#slotOf.get(tool) ?? -1
      const indexed = this.#slots[slot]
      if (this.#wanted.has(tool) || !indexed) continue
      gone.set(slot, indexed.analysis)
      this.#slotOf.delete(tool)
      this.#slots[slot] = undefined
      this.#hints.remove(slot, tool.server, indexed.analysis.name)
    }
    if (gone.size === 0) return
    this.#vocabulary.remove(gone, this.#slots.length)
    this.#free.push(...gone.keys())
  }

  #insert (tool: SearchTool, lexicon: Lexicon): void {
    let analysis = analyses.get(tool)
    if (!analysis) analyses.set(tool, analysis = analyse(tool, lexicon))
    const slot = this.#free.pop() ?? this.#slots.length
    this.#slots[slot] = { tool, analysis }
    this.#slotOf.set(tool, slot)
    this.#hints.add(slot, tool.server, analysis.name)
    this.#vocabulary.add(slot, analysis)
  }

  /**
   * The tools that a question asks for, the best first; equal scores in the order of the tools. Deterministic.
   * @param query in words; its first 2,000 characters and 40 words are read
   * @param limit max number of results
   */
  search (query: string, limit: number): Ranked[] {
    if (!this.#interpreter || limit < 1) return []
    const { concepts, isAsking } = this.#interpreter.read(query)
    const scores = this.#score(concepts)
    for (const [slot, factor] of this.#hints.factors(concepts, this.#vocabulary)) scores.scale(slot, factor)
    const asked = worthOfTerms(concepts)
    const purpose = purposeOf(isAsking, asked)
    const exact = query.trim()
    const found: Ranked[] = []
    for (const slot of scores.best(limit * 2 + 50)) {
      const tool = this.#slots[slot]?.tool
      if (!tool || !this.#wanted.has(tool)) continue
      scores.scale(slot, 1 + tuning.name.whole * this.#namePart(slot, tool.server, asked))
      if (isContrary(purpose, this.#verbOf(slot, tool.server), asked)) scores.scale(slot, tuning.purpose.contrary)
      const isNamed = tool.name === exact || tool.ownName === exact
      found.push({ tool, score: scores.of(slot) + (isNamed ? named : 0) })
    }
    return this.#spread(found).slice(0, limit)
  }

  #score (concepts: readonly Concept[]): Scores {
    const scores = new Scores(this.#slots.length)
    const total = concepts.reduce((sum, { weight }) => sum + weight, 0)
    for (const { weight, variants } of concepts) {
      const [first] = variants
      const highest = first && first.weight > 0.75 ? this.#rarityOf(first.term, variants) : Infinity
      for (const variant of variants) {
        if (variant !== first && this.#isCommon(variant.term)) continue
        const factor = weight * variant.weight * Math.min(highest, this.#rarity(variant.term))
        for (const place of this.#vocabulary.get(variant.term)?.places ?? []) {
          const amount = placeWeight(place) / unit
          scores.offer(slotOf(place), factor * amount * (tuning.saturation + 1) / (amount + tuning.saturation))
        }
      }
      scores.take(weight * tuning.coverage / total)
    }
    scores.finish(1 - tuning.coverage)
    return scores
  }

  /** How much it says that a tool has a term. */
  #rarity (term: string): number {
    const count = this.#slotOf.size
    const places = Math.min(count, Math.max(tuning.rarity.least, this.#vocabulary.get(term)?.places.length ?? 0))
    return Math.log(1 + (count - places + 0.5) / (places + 0.5))
  }

  /** That of a term, between its own and that of the most frequent synonym. */
  #rarityOf (term: string, variants: readonly Variant[]): number {
    const own = this.#rarity(term)
    let least = own
    for (const { term, weight } of variants) if (weight >= 0.3) least = Math.min(least, this.#rarity(term))
    return own + tuning.rarity.ofSynonyms * (least - own)
  }

  /** What part of a tool's name is asked for, from 0 to 1. Words that most names of its server have do not count. */
  #namePart (slot: number, server: string, asked: ReadonlyMap<string, number>): number {
    let [all, part] = [0, 0]
    for (const term of this.#slots[slot]?.analysis.name ?? []) {
      if (this.#hints.isUsual(term, server)) continue
      const weight =
        tuning.name.base + Math.log(1 + this.#slotOf.size / (1 + (this.#vocabulary.get(term)?.places.length ?? 0)))
      all += weight
      part += weight * (asked.get(term) ?? 0)
    }
    return all > 0 ? part / all : 0
  }

  /** The first word of a tool's name, as a term, without words that most names of its server have. */
  #verbOf (slot: number, server: string): string | undefined {
    return this.#slots[slot]?.analysis.name.find((term) => !this.#hints.isUsual(term, server))
  }

  /** Whether a synonym is in so many tools of so many that it says nothing, and costs most of the time. */
  #isCommon (term: string): boolean {
    return (this.#vocabulary.get(term)?.places.length ?? 0) > Math.max(common.tools, this.#slotOf.size * common.part)
  }

  /** Tools of the same name, which several servers have, give way to others after the first. */
  #spread (found: Ranked[]): Ranked[] {
    const seen = new Map<string, number>()
    const order = ({ tool: a, score: x }: Ranked, { tool: b, score: y }: Ranked): number =>
      y - x || (this.#wanted.get(a) ?? 0) - (this.#wanted.get(b) ?? 0)
    return found.sort(order).map(({ tool, score }) => {
      const name = tool.ownName.toLowerCase()
      const times = seen.get(name) ?? 0
      seen.set(name, times + 1)
      return { tool, score: score * tuning.repetition ** times }
    }).sort(order)
  }

  /**
   * The question with typos and foreign words put right, for an embeddings model. The question itself, when nothing is
   * wrong with it.
   */
  interpret (query: string): string {
    const text = this.#interpreter?.read(query).text ?? ''
    return text === '' ? query : text
  }
}

/** What each term of a question is worth for the name of a tool, from 0 to 1. */
function worthOfTerms (concepts: readonly Concept[]): Map<string, number> {
  const terms = new Map<string, number>()
  for (const { weight, variants } of concepts) {
    for (const variant of variants) {
      const worth = Math.min(1, weight) * variant.weight ** tuning.name.exponent
      if (worth > (terms.get(variant.term) ?? 0)) terms.set(variant.term, worth)
    }
  }
  return terms
}

/** Those of one list that do not stand at the same place in another. */
const differing = (list: readonly SearchTool[], other: readonly SearchTool[]): SearchTool[] =>
  list.filter((tool, i) => tool !== other[i])
