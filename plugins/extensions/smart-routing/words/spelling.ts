import type { Lexicon, Variant } from './lexicon.ts'
import { singularOf, stemOf } from './stem.ts'
import { tuning } from './tuning.ts'
import { distance, letters, mistakesIn, type Word, type WordList } from './typos.ts'
import type { Vocabulary } from './vocabulary.ts'

/** One that may have been meant; `rank` from the best one. `places`: how often tools have it. */
interface Candidate { readonly term: string, readonly rank: number, readonly mistakes: number, readonly places: number }

/** A word of tools, with where it occurs, or of the trade. */
interface Known extends Word { readonly places?: readonly number[] }

/** Words of a length. */
type Source = (length: number) => ReadonlyArray<WordList<Known> | undefined>

/** Words that are too short to be misspelled, unless somebody left out the vowel: `snd`. */
const lacksVowel = /^[b-df-hj-np-tv-xz]{3}$/

/** Numbers are not misspelled: `8080` is not `800`. */
const number = /^\d+$/

/** Endings that a misspelled word may have, and the word as a tool has it has not: `directons`, of `direction`. */
const longestEnding = 3
/**
 * What it counts, in mistakes, that the first letter is another one, and that no tool has what a word of the trade
 * stands for.
 */
const penalty = { first: 0.8, useless: 0.9 }

/** The most mistakes that a word may have. */
const mostIn = (word: string): number => lacksVowel.test(word) ? 1 : number.test(word) ? 0 : mistakesIn(word.length)

/** The words that a misspelled one may have been meant to be. */
class Candidates {
  readonly #found: Candidate[] = []

  /** Whether there is one with one mistake. */
  get hasNear (): boolean { return this.#found.some(({ rank }) => rank <= 1) }

  add (mistakes: number, penalty: number, { term, places }: Known): void {
    this.#found.push({ term, mistakes, rank: mistakes + penalty, places: places?.length ?? 0 })
  }

  /** Those of the best rank, the most frequent first: at most three. Where tools have some of them, only these. */
  best (): Variant[] {
    const found = this.#found.sort((a, b) => a.rank - b.rank || b.places - a.places || (a.term < b.term ? -1 : 1))
    const [first] = found
    const terms = new Map<string, number>()
    for (const { term, rank, mistakes, places } of found) {
      if (!first || rank > first.rank || terms.size === 3 || (places === 0 && first.places > 0)) break
      if (!terms.has(term)) terms.set(term, mistakes > 1 ? tuning.twoMistakes : tuning.oneMistake)
    }
    return [...terms].map(([term, weight]) => ({ term, weight }))
  }
}

/** Looks for a word among those that differ from it by a few letters. */
function compare (word: string, most: number, source: Source, found: (mistakes: number, known: Known) => void): void {
  const bits = letters(word)
  for (let length = word.length === 3 ? 4 : word.length - most; length <= word.length + most; length++) {
    for (const words of source(length)) {
      for (const known of words?.near(bits, 2 * most) ?? []) {
        const mistakes = distance(word, known.word, most)
        if (mistakes <= most) found(mistakes, known)
      }
    }
  }
}

/**
 * Looks for a stem among the stems of words that begin with the same letter: of all forms of a word a vocabulary has
 * one.
 */
function compareStems (
  stem: string, most: number, source: Source, found: (mistakes: number, known: Known) => void
): void {
  const bits = letters(stem)
  for (let length = stem.length - most; length <= stem.length + most + longestEnding; length++) {
    for (const words of source(length)) {
      for (const known of words?.near(bits, 2 * most + longestEnding) ?? []) {
        if (known.word.charCodeAt(0) !== stem.charCodeAt(0)) continue
        const mistakes = distance(stem, known.term, most)
        if (mistakes <= most) found(mistakes, known)
      }
    }
  }
}

/**
 * The words of tools that differ from a word by one letter, not the first: `contaner` was meant to be `container`, also
 * in the plural.
 * @param word in lower case, that no tool has
 * @returns at most three, the most frequent ones; none for words of less than four letters
 */
export function nearInTools (word: string, vocabulary: Vocabulary): Variant[] {
  if (mostIn(word) === 0) return []
  const candidates = new Candidates()
  const letter = word.charCodeAt(0)
  const ofTools: Source = (length) => [vocabulary.begun(letter, length)]
  const add = (mistakes: number, known: Known): void => { candidates.add(mistakes, 0, known) }
  for (const form of new Set([word, singularOf(word)])) {
    if (!candidates.hasNear && mistakesIn(form.length) > 0) compare(form, 1, ofTools, add)
  }
  const stem = stemOf(word)
  if (!candidates.hasNear && mistakesIn(stem.length) > 0) compareStems(stem, 1, ofTools, add)
  return candidates.best()
}

/**
 * The words of tools and of the trade that a misspelled one may have been meant to be: those with the fewest mistakes,
 * then with the same first letter, then those that tools have, then the most frequent. Its stem is compared as well.
 * @param word in lower case, that nobody knows
 * @returns at most three
 */
export function similarWords (word: string, vocabulary: Vocabulary, lexicon: Lexicon): Variant[] {
  const most = mostIn(word)
  if (most === 0) return []
  const letter = word.charCodeAt(0)
  const candidates = new Candidates()
  const add = (mistakes: number, known: Known): void => {
    const isUseful = known.places !== undefined || isKnownToTools(known.term, vocabulary, lexicon)
    candidates.add(mistakes, (known.word.charCodeAt(0) === letter ? 0 : penalty.first) +
      (isUseful ? 0 : penalty.useless), known)
  }
  const sources: Source[] = [(length) => [vocabulary.begun(letter, length)], (length) => [lexicon.ofLength(length)]]
  for (const source of sources) compare(word, most, source, add)
  const stem = stemOf(word)
  const mostInStem = mistakesIn(stem.length)
  if (mostInStem > 0 && !candidates.hasNear) for (const source of sources) compareStems(stem, mostInStem, source, add)
  if (word.length > 3 && !candidates.hasNear) compare(word, 1, (length) => vocabulary.notBegun(letter, length), add)
  return candidates.best()
}

/** Whether tools have a term of the trade, or something that it stands for or hints at. */
export function isKnownToTools (term: string, vocabulary: Vocabulary, lexicon: Lexicon): boolean {
  if (vocabulary.has(term)) return true
  return lexicon.variants(term).some((other) => vocabulary.has(other.term)) ||
    lexicon.hints(term).some((hint) => vocabulary.has(hint))
}
