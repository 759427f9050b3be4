import { splitAtLiterals } from './literals.ts'
import type { EnglishMeaning, Lexicon, Variant } from './lexicon.ts'
import { similarToolWords, similarWords } from './spelling.ts'
import { clearFullWordCache, stemOf } from './stem.ts'
import { hasUnspacedScript, unspacedScriptRuns, wordsOf } from './tokens.ts'
import { stopWords } from './stop-words.ts'
import { tuning } from './tuning.ts'
import type { ShownVocabulary } from './vocabulary.ts'
import { extensionsLimits } from '../../limits.ts'

/**
 * A word or phrase of a query, as the terms that tools may have for it: synonyms, spellings and translations. Of the
 * terms that a tool has, the best one counts.
 */
export interface Concept { readonly weight: number, readonly variants: readonly Variant[] }

/**
 * `words`: the words of the query without stop words; foreign words are translated, and each unknown word is followed
 * by its best correction, if there is one.
 */
interface InterpretedQuery { readonly concepts: readonly Concept[], readonly words: readonly string[] }

const bounds = extensionsLimits.wordSearch
/** Max number of words of a phrase in another language. */
const maxPhraseWords = 4

/** Interprets a query. @param vocabulary the terms of the searched tools; other terms are not part of concepts */
export function interpretQuery (query: string, lexicon: Lexicon, vocabulary: ShownVocabulary): InterpretedQuery {
  clearFullWordCache()
  const { concepts, words } = new QueryReader(query.slice(0, bounds.question), lexicon, vocabulary)
  return { concepts: withoutRepetition(concepts), words }
}

/**
 * Lowers the weight of a main synonym that several concepts share, except in the concept where it is highest. Otherwise
 * `message`, a synonym of `send` and of `email`, would outrank `email` in a query about sending an email.
 */
function withoutRepetition (concepts: readonly Concept[]): Concept[] {
  const isMain = ({ weight }: Variant): boolean => weight >= 0.3 && weight <= tuning.synonym
  const highest = new Map<string, number>()
  for (const { weight, variants } of concepts) {
    for (const each of variants) {
      if (isMain(each)) highest.set(each.term, Math.max(highest.get(each.term) ?? 0, weight * each.weight))
    }
  }
  const kept = new Set<string>()
  return concepts.map(({ weight, variants }) => ({
    weight,
    variants: variants.map((each) => {
      if (!isMain(each)) return each
      const isHighest = weight * each.weight === highest.get(each.term) && !kept.has(each.term)
      if (isHighest) kept.add(each.term)
      return isHighest ? each : { term: each.term, weight: each.weight * tuning.again }
    }).sort((a, b) => b.weight - a.weight)
  }))
}

class QueryReader implements InterpretedQuery {
  readonly concepts: Concept[] = []
  readonly words: string[] = []
  readonly #lexicon: Lexicon
  readonly #vocabulary: ShownVocabulary
  readonly #list: string[] = []
  /** The weight of each word of `#list`: that of the literal that contains the word, or 1. */
  readonly #weights: number[] = []
  readonly #stems: readonly string[]
  /** The languages, other than English, that the query is probably in. */
  readonly #languages: ReadonlySet<string>
  /** The first terms of the added concepts. */
  readonly #added = new Set<string>()
  /** The number of words so far for which similar words were looked up. */
  #lookUps = 0

  constructor (query: string, lexicon: Lexicon, vocabulary: ShownVocabulary) {
    this.#lexicon = lexicon
    this.#vocabulary = vocabulary
    for (const { text, weight, hint = '' } of splitAtLiterals(query)) {
      for (const word of wordsOf(text, bounds.words - this.#list.length, false)) {
        this.#list.push(word)
        this.#weights.push(weight)
      }
      for (const word of hint.split(' ')) if (word !== '') this.#add([{ term: stemOf(word), weight: 1 }], tuning.kind)
    }
    this.#stems = this.#list.map(stemOf)
    this.#languages = this.#guessLanguages()
    for (const run of unspacedScriptRuns(query).slice(0, bounds.words)) {
      for (const meanings of lexicon.splitUnspaced(run)) this.#addForeign(meanings, 1)
    }
    for (let at = 0; at < this.#list.length;) at += this.#addPhrase(at) || this.#addWord(at)
  }

  #guessLanguages (): Set<string> {
    const evidence = new Map<string, number>()
    for (const word of this.#list) {
      if (stopWords.has(word)) continue
      const languages = new Set(this.#lexicon.languagesWithStopWord(word))
      const meanings = this.#lexicon.isForeign(word) && !this.#isKnown(word) ? this.#lexicon.meaningsOf(word) : []
      for (const { language } of meanings) languages.add(language)
      for (const language of languages) evidence.set(language, (evidence.get(language) ?? 0) + 1)
    }
    const english = this.#list.filter((word) => this.#lexicon.isCommon(word)).length
    const most = Math.max(english + 1, ...evidence.values())
    return new Set([...evidence].filter(([, count]) => count >= most).map(([language]) => language))
  }

  /** Whether a word, or another form of it, is in a tool or is an English word of the lexicon. */
  #isKnown (word: string): boolean { return this.#vocabulary.has(stemOf(word)) || this.#lexicon.isEnglishWord(word) }

  /**
   * Adds a concept of the terms and their synonyms that tools have. Does nothing if a concept with the same first term
   * was added before.
   */
  #add (meant: readonly Variant[], weight: number): void {
    const [first] = meant
    if (!first || this.#added.has(first.term)) return
    this.#added.add(first.term)
    const variants = new Map<string, number>()
    const count = (term: string, weight: number): void => {
      if (this.#vocabulary.has(term) && weight > (variants.get(term) ?? 0)) variants.set(term, weight)
    }
    for (const { term, weight } of meant) {
      count(term, weight)
      for (const other of this.#lexicon.variants(term)) count(other.term, weight * other.weight)
    }
    if (variants.size === 0) return
    const sorted = [...variants].map(([term, weight]) => ({ term, weight })).sort((a, b) => b.weight - a.weight)
    this.concepts.push({ weight, variants: sorted.slice(0, bounds.variants) })
  }

  /** Adds a foreign word. @param more terms for the word besides its translations */
  #addForeign (meanings: readonly EnglishMeaning[], weight: number, more: readonly Variant[] = []): void {
    this.#add([...more, ...meanings.map(({ term }) => ({ term, weight: tuning.translation }))], weight)
    for (const { english } of meanings.slice(0, 1)) this.words.push(...english.split(' '))
  }

  /**
   * Adds the longest foreign phrase that begins at an index of `#list`. If there is none, adds the two words at the
   * index as one joined term, if that is known; both are then also added as single words.
   * @returns the number of words that need no further processing; 0 if there is no foreign phrase
   */
  #addPhrase (at: number): number {
    for (let length = Math.min(maxPhraseWords, this.#list.length - at); length > 1; length--) {
      const foreign = this.#foreign(this.#list.slice(at, at + length).join(' '))
      if (foreign.length === 0) continue
      this.#addForeign(foreign, 1)
      return length
    }
    const [first, second] = this.#stems.slice(at, at + 2)
    if (first === undefined || second === undefined) return 0
    const isPlain = this.#list.slice(at, at + 2).some((word) => this.#lexicon.isCommon(word))
    const joined = stemOf(first + second)
    if (this.#lexicon.knows(first + second)) this.#add([{ term: first + second, weight: 1 }], tuning.joined)
    else if (!isPlain && this.#vocabulary.has(joined)) this.#add([{ term: joined, weight: 1 }], tuning.joined / 2)
    return 0
  }

  /** Returns the meanings of foreign words in the languages of the query, or, if there are none, in any language. */
  #foreign (words: string): readonly EnglishMeaning[] {
    const all = this.#lexicon.meaningsOf(words)
    const own = all.filter(({ language }) => this.#languages.has(language))
    return own.length > 0 ? own : all
  }

  /** Adds the word at an index of `#list`. @returns 1, the number of processed words */
  #addWord (at: number): number {
    const [word = '', term = '', factor = 1] = [this.#list[at], this.#stems[at], this.#weights[at]]
    if (stopWords.has(word)) return 1
    if (this.#lexicon.languagesWithStopWord(word).some((language) => this.#languages.has(language))) return 1
    if (hasUnspacedScript(word)) {
      this.#add([{ term, weight: 1 }], factor * tuning.pair)
      return 1
    }
    const foreign = this.#foreign(word)
    const isInQueryLanguage = foreign.some(({ language }) => this.#languages.has(language))
    const isKnown = this.#isKnown(word)
    if (foreign.length > 0 && isInQueryLanguage) this.#addForeign(foreign, factor, isKnown ? [{ term, weight: 1 }] : [])
    else if (isKnown) {
      this.#add([{ term, weight: 1 }], factor * (this.#lexicon.isCommon(word) ? tuning.everyday : 1))
      this.words.push(word)
    } else if (this.#lexicon.isCommon(word)) this.words.push(word)
    else this.#addUnknown(word, foreign, factor)
    return 1
  }

  /**
   * Adds a word that no tool has. The word is taken for a tool's word with one mistake; if there is none, for a foreign
   * word; otherwise for a misspelled word.
   */
  #addUnknown (word: string, foreign: readonly EnglishMeaning[], factor: number): void {
    const isLookedUp = this.#lookUps++ < bounds.misspelled
    const near = isLookedUp && !this.#lexicon.isForeign(word) ? similarToolWords(word, this.#vocabulary) : []
    if (near.length === 0 && foreign.length > 0) {
      this.#addForeign(foreign, factor)
      return
    }
    const similar = near.length > 0 || !isLookedUp ? near : similarWords(word, this.#vocabulary, this.#lexicon)
    this.#add(similar, factor)
    const [best] = similar
    this.words.push(word)
    if (best) this.words.push(this.#lexicon.wordByStem.get(best.term) ?? this.#vocabulary.get(best.term)?.word ?? word)
  }
}
