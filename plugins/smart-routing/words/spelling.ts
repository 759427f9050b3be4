import type { Lexicon, Variant } from './lexicon.ts'
import { stemOf } from './stem.ts'
import { tuning } from './tuning.ts'
import { distance, letters, mistakesIn, type Word } from './typos.ts'
import type { Vocabulary } from './vocabulary.ts'

/** One that may have been meant; `rank` from the best one. */
interface Candidate { readonly term: string, readonly rank: number, readonly mistakes: number, readonly places: number }

/** A word of tools, with where it occurs, or of the trade. */
interface Known extends Word { readonly places?: readonly number[] }

/** Words that are too short to be misspelled, unless somebody left out the vowel: `snd`. */
const lacksVowel = /^[b-df-hj-np-tv-xz]{3}$/

/** Endings that a misspelled word may have, and the word as a tool has it has not: `directons`, of `direction`. */
const longestEnding = 3

/**
 * The words of tools and of the trade that a misspelled one may have been meant to be: those with the fewest mistakes, then with the same
 * first letter, then the most frequent. Its stem is compared as well, since of all forms of a word a vocabulary has one.
 * @param word in lower case, that nobody knows
 * @returns at most three
 */
export function similarWords (word: string, vocabulary: Vocabulary, lexicon: Lexicon): Variant[] {
  const most = lacksVowel.test(word) ? 1 : mistakesIn(word.length)
  if (most === 0) return []
  const letter = word.charCodeAt(0)
  const found: Candidate[] = []
  const isFound = (): boolean => found.some(({ rank }) => rank <= 1)
  const look = (one: string, other: string, most: number, { term, places }: Known): void => {
    const mistakes = distance(one, other, most)
    if (mistakes <= most) found.push({ term, mistakes, rank: mistakes + (other[0] === one[0] ? 0 : 0.8), places: places?.length ?? 0 })
  }

  const bits = letters(word)
  for (let length = word.length === 3 ? 4 : word.length - most; length <= word.length + most; length++) {
    for (const words of [vocabulary.begun(letter, length), lexicon.ofLength(length)]) {
      for (const known of words?.near(bits, 2 * most) ?? []) look(word, known.word, most, known)
    }
  }
  const stem = stemOf(word)
  const mostInStem = mistakesIn(stem.length)
  if (stem !== word && mostInStem > 0 && !isFound()) {
    const stemBits = letters(stem)
    for (let length = stem.length - mostInStem; length <= stem.length + mostInStem + longestEnding; length++) {
      for (const words of [vocabulary.begun(letter, length), lexicon.ofLength(length)]) {
        for (const known of words?.near(stemBits, 2 * mostInStem + longestEnding) ?? []) {
          if (known.word.charCodeAt(0) === letter) look(stem, known.term, mostInStem, known)
        }
      }
    }
  }
  if (word.length > 3 && !isFound()) {
    for (const length of [word.length - 1, word.length, word.length + 1]) {
      for (const words of vocabulary.notBegun(letter, length)) {
        for (const known of words.near(bits, 2)) look(word, known.word, 1, known)
      }
    }
  }
  return best(found)
}

function best (found: Candidate[]): Variant[] {
  found.sort((a, b) => a.rank - b.rank || b.places - a.places || (a.term < b.term ? -1 : 1))
  const [first] = found
  const terms = new Map<string, number>()
  for (const { term, rank, mistakes } of found) {
    if (rank > (first?.rank ?? 0) || terms.size === 3) break
    if (!terms.has(term)) terms.set(term, mistakes > 1 ? tuning.twoMistakes : tuning.oneMistake)
  }
  return [...terms].map(([term, weight]) => ({ term, weight }))
}
