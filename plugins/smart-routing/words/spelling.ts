import type { Lexicon, Variant } from './lexicon.ts'
import { stemOf } from './stem.ts'
import { tuning } from './tuning.ts'
import { differing, distance, letters, mistakesIn, type Word } from './typos.ts'
import type { Vocabulary } from './vocabulary.ts'

/** One that may have been meant; `rank` from the best one. */
interface Candidate { readonly term: string, readonly rank: number, readonly mistakes: number, readonly places: number }

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
  const found: Candidate[] = []
  const compare = (one: string, bits: number, most: number, { term, bits: others }: Word, other: string, places: number): void => {
    if (differing(bits, others) > 2 * most + (other === term ? longestEnding : 0)) return
    const mistakes = distance(one, other, most)
    if (mistakes <= most) found.push({ term, mistakes, rank: mistakes + (other[0] === one[0] ? 0 : 0.8), places })
  }
  const bits = letters(word)
  const letter = word.charCodeAt(0)
  for (let length = word.length === 3 ? 4 : word.length - most; length <= word.length + most; length++) {
    for (const entry of vocabulary.begun(letter, length)) compare(word, bits, most, entry, entry.word, entry.places.length)
    for (const other of lexicon.ofLength(length)) compare(word, bits, most, other, other.word, 0)
  }
  const isFound = (): boolean => found.some(({ rank }) => rank <= 1)
  const stem = stemOf(word)
  const mostInStem = mistakesIn(stem.length)
  if (stem !== word && mostInStem > 0 && !isFound()) {
    const stemBits = letters(stem)
    for (let length = stem.length - mostInStem; length <= stem.length + mostInStem + longestEnding; length++) {
      for (const entry of vocabulary.begun(letter, length)) compare(stem, stemBits, mostInStem, entry, entry.term, entry.places.length)
      for (const other of lexicon.ofLength(length)) {
        if (other.word.charCodeAt(0) === letter) compare(stem, stemBits, mostInStem, other, other.term, 0)
      }
    }
  }
  if (word.length > 3 && !isFound()) {
    for (const length of [word.length - 1, word.length, word.length + 1]) {
      for (const words of vocabulary.notBegun(letter, length)) {
        for (const entry of words) compare(word, bits, 1, entry, entry.word, entry.places.length)
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
