import type { Lexicon } from './lexicon.ts'
import { stemOf } from './stem.ts'
import type { Vocabulary } from './vocabulary.ts'

/** Splits compound words. */
export class Compounds {
  readonly #lexicon: Lexicon
  readonly #vocabulary: Vocabulary

  constructor (lexicon: Lexicon, vocabulary: Vocabulary) {
    this.#lexicon = lexicon
    this.#vocabulary = vocabulary
  }

  isKnown (term: string): boolean { return this.#vocabulary.has(term) || this.#lexicon.knows(term) }

  /**
   * Splits a compound into known words: `pullrequest`, `Kalendereintrag`. Prefers few parts of similar length.
   * @param most max number of parts
   */
  split (word: string, most: number): string[] | undefined {
    if (word.length < 7 || most < 2) return undefined
    const middle = word.length / 2
    const places = Array.from({ length: word.length - 6 }, (_, i) => i + 3).sort((a, b) =>
      Math.abs(a - middle) - Math.abs(b - middle))
    for (const at of places) {
      const first = this.#asPart(word.slice(0, at))
      const second = this.#asPart(word.slice(at))
      if (first !== undefined && second !== undefined) return [first, second]
    }
    for (const at of places) {
      const first = this.#asPart(word.slice(0, at))
      const others = first === undefined ? undefined : this.split(word.slice(at), most - 1)
      if (first !== undefined && others) return [first, ...others]
    }
    return undefined
  }

  /** A part of a compound as a known word, without a German linking element (`s`, `n`, `es`, `en`). */
  #asPart (part: string): string | undefined {
    const isWord = (word: string): boolean => {
      if (word.length < 3) return false
      if (word.length < 4) return this.#lexicon.knows(stemOf(word)) && this.#vocabulary.has(stemOf(word))
      return this.isKnown(stemOf(word)) || this.#lexicon.foreign(word).length > 0
    }
    if (isWord(part)) return part
    for (const joint of ['s', 'n', 'es', 'en']) {
      const bare = part.slice(0, -joint.length)
      if (part.endsWith(joint) && bare.length > 3 && isWord(bare)) return bare
    }
    return undefined
  }
}
