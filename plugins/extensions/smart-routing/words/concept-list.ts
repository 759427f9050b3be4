import { extensionsLimits } from '../../limits.ts'
import type { Concept } from './concepts.ts'
import type { Lexicon, Variant } from './lexicon.ts'
import { tuning } from './tuning.ts'
import type { Vocabulary } from './vocabulary.ts'

/** The concepts of a query, each with the indexed terms that can express it. */
export class ConceptList {
  readonly all: Concept[] = []
  readonly #lexicon: Lexicon
  readonly #vocabulary: Vocabulary

  constructor (lexicon: Lexicon, vocabulary: Vocabulary) {
    this.#lexicon = lexicon
    this.#vocabulary = vocabulary
  }

  /** Adds a concept with the variants of its terms, and a weaker concept for each hint. */
  add (meant: Variant[], weight: number): void {
    const variants = new Map<string, number>()
    const count = (term: string, weight: number): void => {
      if (this.#vocabulary.has(term) && weight > (variants.get(term) ?? 0)) variants.set(term, weight)
    }
    for (const { term, weight } of meant) {
      count(term, weight)
      for (const other of this.#lexicon.variants(term)) count(other.term, weight * other.weight)
    }
    // If no tool has the phrase or a variant of it, its single words count.
    if (variants.size === 0) {
      for (const { term, weight } of meant) {
        const parts = this.#lexicon.partsOf(term) ?? []
        for (const part of parts) if (!this.#lexicon.isPlain(part)) count(part, weight * tuning.part)
      }
    }
    if (variants.size > 0) {
      const sorted = [...variants].map(([term, weight]) => ({ term, weight })).sort((a, b) => b.weight - a.weight)
      this.all.push({ weight, variants: sorted.slice(0, extensionsLimits.wordSearch.variants) })
    }
    for (const { term } of meant) {
      const hints = this.#lexicon.hints(term)
      // The more hints a term has, the less each of them counts.
      const each = weight * tuning.hint.one / hints.length ** tuning.hint.exponent
      for (const hint of hints) {
        const spellings = this.#lexicon.variants(hint).filter(({ weight }) => weight > 0.5)
        this.addPlain([hint, ...spellings.map(({ term }) => term)], each)
      }
    }
  }

  /** Adds a concept of exactly these terms, without variants and hints. */
  addPlain (terms: readonly string[], weight: number): void {
    const variants = terms.filter((term) => this.#vocabulary.has(term)).map((term) => ({ term, weight: 1 }))
    if (variants.length > 0) this.all.push({ weight, variants })
  }
}
