import { lightVerbs } from './common-words.ts'
import type { Foreign, Lexicon, Variant } from './lexicon.ts'
import { isKnownToTools, nearInTools } from './spelling.ts'
import { stemOf } from './stem.ts'
import type { Vocabulary } from './vocabulary.ts'
import { extensionsLimits } from '../../limits.ts'

/**
 * Words of a question that may be misspelled, although the lexicons have something that they may be: `contaner` begins
 * like a Portuguese word, and `invoce` has the stem of `invocation`. What tools have, and differs by one letter, was
 * meant rather.
 */
export class Doubts {
  readonly #lexicon: Lexicon
  readonly #vocabulary: Vocabulary
  /** What words may have been meant to be, by word: of as many words as may be looked up in one question. */
  readonly #near = new Map<string, readonly Variant[]>()

  constructor (lexicon: Lexicon, vocabulary: Vocabulary) {
    this.#lexicon = lexicon
    this.#vocabulary = vocabulary
  }

  /**
   * What a word may have been meant to be, of the words that tools have; none for words beyond the bound of a question.
   */
  near (word: string): readonly Variant[] {
    let near = this.#near.get(word)
    if (near) return near
    near = this.#near.size < extensionsLimits.wordSearch.misspelled ? nearInTools(word, this.#vocabulary) : []
    this.#near.set(word, near)
    return near
  }

  /**
   * Whether a word is not known for certain: no tool has it, no English word is written so, and no language has it, if
   * not one that the question is in, in which it need only begin like one.
   */
  isDoubtful (word: string, languages: ReadonlySet<string>): boolean {
    if (this.#vocabulary.has(stemOf(word)) || lightVerbs.has(word) || this.#lexicon.isWritten(word)) return false
    const meanings = this.#lexicon.foreign(word)
    return !meanings.some(({ language }) => languages.has(language)) && !this.isTranslated(word, meanings)
  }

  /**
   * Whether another language has just this word, not only one that begins like it, and tools something of what it
   * means.
   */
  isTranslated (word: string, meanings: readonly Foreign[]): boolean {
    if (!this.#lexicon.isForeign(word)) return false
    return meanings.some((meaning) =>
      isKnownToTools(this.#lexicon.translated(meaning).term, this.#vocabulary, this.#lexicon))
  }
}
