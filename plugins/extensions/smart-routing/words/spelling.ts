import type { Lexicon, Variant } from './lexicon.ts'
import { singularOf, stemOf } from './stem.ts'
import { tuning } from './tuning.ts'
import { distance, letters, mistakesIn, type Word, type WordList } from './typos.ts'
import type { Vocabulary } from './vocabulary.ts'

/** A possible correction. `rank`: mistakes plus penalties, the lowest is best. `places`: how many tools have it. */
interface Candidate { readonly term: string, readonly rank: number, readonly mistakes: number, readonly places: number }

/** A word of the tools, with its places, or a word of the lexicon, without. */
interface Known extends Word { readonly places?: readonly number[] }

/** Returns the known words of a given length. */
type Source = (length: number) => ReadonlyArray<WordList<Known> | undefined>

/**
 * Three consonants, such as `snd`: the only words of three letters that count as misspelled, since a vowel is missing.
 */
const lacksVowel = /^[b-df-hj-np-tv-xz]{3}$/

/** Numbers are not misspelled: `8080` is not `800`. */
const number = /^\d+$/

/**
 * Max number of letters that a known word has after its stem, when stems are compared: the stem of `directons` finds
 * `direction`.
 */
const longestEnding = 3
/**
 * Penalties in mistakes: `first`: the first letter differs; `useless`: it is a word of the lexicon, and no tool has it
 * or anything that it stands for.
 */
const penalty = { first: 0.8, useless: 0.9 }

/** The max number of mistakes in a word. */
const mostIn = (word: string): number => lacksVowel.test(word) ? 1 : number.test(word) ? 0 : mistakesIn(word.length)

/** The possible corrections of a word. */
class Candidates {
  readonly #found: Candidate[] = []

  /** Whether there is a candidate with one mistake and no penalty. */
  get hasNear (): boolean { return this.#found.some(({ rank }) => rank <= 1) }

  add (mistakes: number, penalty: number, { term, places }: Known): void {
    this.#found.push({ term, mistakes, rank: mistakes + penalty, places: places?.length ?? 0 })
  }

  /** At most three candidates of the best rank, the most frequent first. If tools have some of them, only those. */
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

/** Finds the known words that differ from a word by at most `most` mistakes. */
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
 * Finds the known words with the same first letter whose stem differs by at most `most` mistakes. Stems are compared
 * because a vocabulary holds one form of each word.
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
 * The words of the tools that differ from a word by one letter, but not the first: `contaner` becomes `container`.
 * Plurals are recognised.
 * @param word in lower case; no tool has it
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
 * The words of the tools and of the lexicon that a misspelled word may stand for: ordered by mistakes and penalties,
 * then by frequency. Stems are compared too.
 * @param word an unknown word, in lower case
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

/** Whether tools have a term of the lexicon, a variant of it or one of its hints. */
export function isKnownToTools (term: string, vocabulary: Vocabulary, lexicon: Lexicon): boolean {
  if (vocabulary.has(term)) return true
  return lexicon.variants(term).some((other) => vocabulary.has(other.term)) ||
    lexicon.hints(term).some((hint) => vocabulary.has(hint))
}
