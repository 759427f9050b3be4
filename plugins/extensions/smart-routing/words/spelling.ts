import type { Lexicon, Variant } from './lexicon.ts'
import { withoutPluralEnding } from './stem.ts'
import { tuning } from './tuning.ts'
import { editDistance, letterBits, maxMistakes, type ComparableWord } from './typos.ts'
import type { ShownVocabulary, SimilarWords } from './vocabulary.ts'

/**
 * A possible correction. `rank`: mistakes plus penalties; the lowest is best. `places`: the number of tools that
 * contain the term.
 */
interface Candidate { readonly term: string, readonly rank: number, readonly mistakes: number, readonly places: number }

/** A word with which a misspelled word is compared: a word of the tools, or, without `places`, of the lexicon. */
interface KnownWord extends ComparableWord { readonly places?: readonly number[] }

/** Returns the words of a given length with which a misspelled word is compared. */
type Source = (length: number) => ReadonlyArray<SimilarWords<KnownWord> | undefined>

/** Matches three consonants, such as `snd`. Other words of three letters are not treated as misspelled. */
const lacksVowel = /^[b-df-hj-np-tv-xz]{3}$/
/** Numbers are not corrected: `8080` is not a misspelling of `800`. */
const numberPattern = /^\d+$/
/**
 * Penalties, in mistakes. `first`: for another first letter. `useless`: for a word of the lexicon of which no tool has
 * a synonym.
 */
const penalty = { first: 0.8, useless: 0.9 }

const maxMistakesIn = (word: string): number =>
  lacksVowel.test(word) ? 1 : numberPattern.test(word) ? 0 : maxMistakes(word.length)

/**
 * Calls `found` with each known word that differs from a word by at most `max` mistakes; plurals are also compared as
 * singulars.
 */
function visitSimilar (
  word: string, max: number, source: Source, found: (mistakes: number, known: KnownWord) => void
): void {
  for (const form of new Set([word, withoutPluralEnding(word)])) {
    const bits = letterBits(form)
    for (let length = form.length === 3 ? 4 : form.length - max; length <= form.length + max + 1; length++) {
      for (const words of source(length)) {
        for (const known of words?.findSimilar(bits, 2 * max + 1) ?? []) {
          const mistakes = Math.min(
            editDistance(form, known.word, max), editDistance(form, withoutPluralEnding(known.word), max)
          )
          if (mistakes <= max) found(mistakes, known)
        }
      }
    }
  }
}

/**
 * Returns the terms of the candidates with the lowest rank, at most three, the most frequent first. If tools contain
 * the first term, terms that no tool contains are omitted.
 */
function toVariants (candidates: Candidate[]): Variant[] {
  const [first, ...others] = candidates.sort((a, b) =>
    a.rank - b.rank || b.places - a.places || (a.term < b.term ? -1 : 1))
  if (!first) return []
  const equal = others.filter(({ rank, places }) => rank <= first.rank && (places > 0 || first.places === 0))
  const terms = new Map([first, ...equal].map(({ term, mistakes }) => [term, mistakes]))
  return [...terms].slice(0, 3).map(([term, mistakes]) =>
    ({ term, weight: mistakes > 1 ? tuning.twoMistakes : tuning.oneMistake }))
}

/**
 * Returns the words of the tools that begin with the same letter as a word, and differ from it by one mistake:
 * `contaner` becomes `container`.
 * @param word in lower case; no tool has it
 * @returns at most three, the most frequent ones; usually none for words of fewer than four letters
 */
export function similarToolWords (word: string, vocabulary: ShownVocabulary): Variant[] {
  const found: Candidate[] = []
  if (maxMistakesIn(word) > 0) {
    const letter = word.charCodeAt(0)
    visitSimilar(word, 1, (length) => [vocabulary.startingWith(letter, length)], (mistakes, { term, places = [] }) => {
      found.push({ term, mistakes, rank: mistakes, places: places.length })
    })
  }
  return toVariants(found)
}

/**
 * Returns the words of the tools and of the lexicon that a misspelled word most probably stands for, the most frequent
 * first.
 * @param word an unknown word, in lower case
 * @returns at most three terms, with the same number of mistakes and penalties
 */
export function similarWords (word: string, vocabulary: ShownVocabulary, lexicon: Lexicon): Variant[] {
  const max = maxMistakesIn(word)
  if (max === 0) return []
  const letter = word.charCodeAt(0)
  const found: Candidate[] = []
  const add = (mistakes: number, { word: other, term, places }: KnownWord): void => {
    const isUseful = places ?? lexicon.variants(term).some((variant) => vocabulary.has(variant.term))
    const rank = mistakes + (other.charCodeAt(0) === letter ? 0 : penalty.first) + (isUseful ? 0 : penalty.useless)
    found.push({ term, mistakes, rank, places: places?.length ?? 0 })
  }
  visitSimilar(word, max, (length) => [vocabulary.startingWith(letter, length), lexicon.wordsOfLength(length)], add)
  const isClear = found.some(({ rank }) => rank <= 1)
  if (word.length > 3 && !isClear) visitSimilar(word, 1, (length) => vocabulary.notStartingWith(letter, length), add)
  return toVariants(found)
}
