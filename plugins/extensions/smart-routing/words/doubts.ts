import { lightVerbs } from './common-words.ts'
import type { Foreign, Lexicon, Variant } from './lexicon.ts'
import { isKnownToTools, nearInTools } from './spelling.ts'
import { stemOf } from './stem.ts'
import type { Vocabulary } from './vocabulary.ts'
import { extensionsLimits } from '../../limits.ts'

/**
 * Finds probable misspellings among words that the lexicons seem to know: `contaner` begins like a Portuguese word, and
 * `invoce` has the stem of `invocation`. A word of the tools that differs by one letter is then preferred.
 */
export class Doubts {
  readonly #lexicon: Lexicon
  readonly #vocabulary: Vocabulary
  /** Probable corrections by word, for at most `misspelled` words of a query. */
  readonly #near = new Map<string, readonly Variant[]>()

  constructor (lexicon: Lexicon, vocabulary: Vocabulary) {
    this.#lexicon = lexicon
    this.#vocabulary = vocabulary
  }

  /** The words of the tools that a word probably stands for; empty beyond the limit of look-ups of a query. */
  near (word: string): readonly Variant[] {
    let near = this.#near.get(word)
    if (near) return near
    near = this.#near.size < extensionsLimits.wordSearch.misspelled ? nearInTools(word, this.#vocabulary) : []
    this.#near.set(word, near)
    return near
  }

  /**
   * Whether a word may be misspelled: no tool has it, it is no form of a known English word, no language of the query
   * has it or a beginning of it, and `isTranslated` is false.
   */
  isDoubtful (word: string, languages: ReadonlySet<string>): boolean {
    if (this.#vocabulary.has(stemOf(word)) || lightVerbs.has(word) || this.#lexicon.isWritten(word)) return false
    const meanings = this.#lexicon.foreign(word)
    return !meanings.some(({ language }) => languages.has(language)) && !this.isTranslated(word, meanings)
  }

  /**
   * Whether a language has exactly this word (a common beginning is not enough), and the tools have one of its
   * meanings.
   */
  isTranslated (word: string, meanings: readonly Foreign[]): boolean {
    if (!this.#lexicon.isForeign(word)) return false
    return meanings.some((meaning) =>
      isKnownToTools(this.#lexicon.translated(meaning).term, this.#vocabulary, this.#lexicon))
  }
}
