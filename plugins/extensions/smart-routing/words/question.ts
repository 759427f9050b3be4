import { lightVerbs, stopWords } from './common-words.ts'
import { Compounds } from './compounds.ts'
import { ConceptList } from './concept-list.ts'
import { withoutRepetition, type Concept } from './concepts.ts'
import { Doubts } from './doubts.ts'
import { piecesOf } from './literals.ts'
import type { Foreign, Lexicon, Variant } from './lexicon.ts'
import { carrying, particlesOf } from './phrases.ts'
import { asking, isAsking, telling } from './purpose.ts'
import { similarWords } from './spelling.ts'
import { stemOf } from './stem.ts'
import { isUnspaced, unspacedRuns, wordsOf } from './tokens.ts'
import { tuning } from './tuning.ts'
import type { Vocabulary } from './vocabulary.ts'
import { extensionsLimits } from '../../limits.ts'

/** `text`: the query with typos corrected and foreign words translated. `isAsking`: it asks for information. */
interface Question { readonly concepts: Concept[], readonly text: string, readonly isAsking: boolean }

/** Max number of words of a query that a phrase may span, including ignored words. */
const longestSpan = 9

/** Terms of batch tools, and the words of a query that ask for several items. Units of time and size are excluded. */
const together: readonly string[] = ['batch', 'bulk', 'multiple', 'many'].map((word) => stemOf(word))
const severalWords =
  /^(?:[2-9]|[1-9]\d{1,2}|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|fifty|hundred|hundreds|several|these|those)$/
const pluralEnd = /^(?!(?:second|minute|hour|day|week|month|year|percent|euro|dollar|pixel|line|time)s$)\w{2,}[^su]s$/
/** Max distance in words between a number and its noun. */
const nearNumber = 3

const bounds = extensionsLimits.wordSearch

/** Interprets queries, using the terms of a vocabulary. */
export class Interpreter {
  readonly #lexicon: Lexicon
  readonly #vocabulary: Vocabulary

  constructor (lexicon: Lexicon, vocabulary: Vocabulary) {
    this.#lexicon = lexicon
    this.#vocabulary = vocabulary
  }

  read (query: string): Question {
    const text = query.slice(0, bounds.question)
    const reading = new Reading(this.#lexicon, this.#vocabulary, text)
    for (const run of unspacedRuns(text).slice(0, bounds.words)) reading.addUnspaced(run)
    reading.addAll()
    return { concepts: withoutRepetition(reading.concepts), text: reading.text.join(' '), isAsking: reading.isAsking }
  }
}

class Reading {
  readonly text: string[] = []
  readonly isAsking: boolean
  readonly #lexicon: Lexicon
  readonly #vocabulary: Vocabulary
  readonly #compounds: Compounds
  readonly #concepts: ConceptList
  readonly #words: string[] = []
  /** The weight of each word, by the kind of the piece that contains it. */
  readonly #weights: number[] = []
  readonly #stems: string[]
  /** The words as `carrying` normalises them. */
  readonly #carrying: ReadonlyArray<string | undefined>
  /** The probable languages of the query, without English. */
  readonly #languages: ReadonlySet<string>
  /** Indexes of words that a phrase with a gap or a separated verb has used already. */
  readonly #said = new Set<number>()
  readonly #doubts: Doubts
  #misspelled = 0

  constructor (lexicon: Lexicon, vocabulary: Vocabulary, question: string) {
    this.#lexicon = lexicon
    this.#vocabulary = vocabulary
    this.#doubts = new Doubts(lexicon, vocabulary)
    this.#compounds = new Compounds(lexicon, vocabulary)
    this.#concepts = new ConceptList(lexicon, vocabulary)
    for (const { text, weight, hint = '' } of piecesOf(question)) {
      for (const word of wordsOf(text, bounds.words - this.#words.length, false)) {
        this.#words.push(word)
        this.#weights.push(weight)
      }
      for (const word of hint.split(' ')) {
        if (word !== '') this.#concepts.add([{ term: stemOf(word), weight: 1 }], tuning.kind)
      }
    }
    this.#stems = this.#words.map(stemOf)
    this.#carrying = this.#words.map((word, i) => carrying(word, this.#stems[i] ?? ''))
    this.isAsking = isAsking(question, this.#words[0] ?? '')
    this.#languages = this.#guessLanguages()
  }

  get concepts (): readonly Concept[] { return this.#concepts.all }

  #guessLanguages (): Set<string> {
    const evidence = new Map<string, number>()
    const count = (languages: Iterable<string>): void => {
      for (const language of languages) evidence.set(language, (evidence.get(language) ?? 0) + 1)
    }
    /** Words that may be misspelled, with the languages that may have them. */
    const doubtful: Array<[word: string, languages: Set<string>]> = []
    for (const word of this.#words) {
      if (isUnspaced(word) || stopWords.has(word)) continue
      const languages = new Set(this.#lexicon.stopLanguages(word))
      const meanings = this.#compounds.isKnown(stemOf(word)) ? [] : this.#lexicon.foreign(word)
      const isSure = languages.size > 0 || meanings.length === 0 || this.#doubts.isTranslated(word, meanings)
      for (const { language } of meanings) languages.add(language)
      if (isSure) count(languages)
      else doubtful.push([word, languages])
    }
    for (const [word, languages] of doubtful) {
      const isBacked = [...languages].some((language) => evidence.has(language))
      if (isBacked || this.#doubts.near(word).length === 0) count(languages)
    }
    const english = this.#words.filter((word) => this.#isEveryday(word)).length
    const most = Math.max(english + 1, ...evidence.values())
    return new Set([...evidence].filter(([, count]) => count >= most).map(([language]) => language))
  }

  #isEveryday (word: string): boolean {
    return stopWords.has(word) || lightVerbs.has(word) || this.#lexicon.isCommon(word)
  }

  /** Whether a word is a compound of words that tools have, in English or as translations. */
  #isCompound (word: string): boolean {
    const isOfTools = (part: string): boolean =>
      !this.#isEveryday(part) && this.#meanings(part).some(({ term }) => this.#vocabulary.has(term))
    return this.#compounds.split(word, 3)?.every(isOfTools) === true
  }

  /** The meanings of a foreign word: those in the languages of the query if there are any, else all. */
  #foreign (words: string): readonly Foreign[] {
    const all = this.#lexicon.foreign(words)
    const own = all.filter(({ language }) => this.#languages.has(language))
    return own.length > 0 ? own : all
  }

  addUnspaced (run: string): void {
    for (const meanings of this.#lexicon.unspaced(run)) {
      this.#concepts.add(meanings.map((meaning) => this.#lexicon.translated(meaning)), 1)
      this.text.push(meanings[0]?.english ?? '')
    }
  }

  addAll (): void {
    /** Number of the next words that are part of a phrase; they weigh less than the phrase. */
    let within = 0
    if (asking.has(this.#words[0] ?? '')) this.#concepts.addPlain(telling, tuning.telling)
    if (this.#words.some((_, i) => this.#areMany(i))) this.#concepts.addPlain(together, tuning.together)
    for (let i = 0; i < this.#words.length; i++) {
      this.#addGapped(i)
      const length = this.#addPhrase(i)
      if (length > within) within = length
      const number = /^\d+$/.test(this.#words[i] ?? '') ? tuning.number : 1
      this.#addWord(i, number * (within > 0 ? tuning.within : 1) * (this.#weights[i] ?? 1))
      within--
    }
  }

  /** Whether a word is a number with a plural soon after it: `ten contacts`, `these 20 old deals`. */
  #areMany (at: number): boolean {
    if (!severalWords.test(this.#words[at] ?? '')) return false
    return this.#words.slice(at + 1, at + 1 + nearNumber).some((word) =>
      pluralEnd.test(word) && !this.#isEveryday(word))
  }

  /** Adds the longest phrase that begins at an index. @returns its length in words; 0: none */
  #addPhrase (at: number): number {
    for (let length = Math.min(longestSpan, this.#words.length - at); length > 1; length--) {
      const stems = this.#stems.slice(at, at + length)
      const term = this.#phrase(stems) ?? this.#carriedBy(at, length)
      if (term !== undefined) {
        this.#concepts.add([{ term, weight: 1 }], 1)
        return length
      }
      if (length > this.#lexicon.longestPhrase) continue
      const foreign = this.#foreign(this.#words.slice(at, at + length).join(' '))
      if (foreign.length > 0) {
        this.#concepts.add(foreign.map((meaning) => this.#lexicon.translated(meaning)), 1)
        this.text.push(foreign[0]?.english ?? '')
        return length
      }
      const joined = stemOf(stems.join(''))
      const isSaid = this.#words.slice(at, at + 2).every((word) => !this.#isEveryday(word))
      if (length === 2 && isSaid && this.#vocabulary.has(joined)) {
        this.#concepts.add([{ term: joined, weight: tuning.joined }], 0.5)
      }
    }
    return this.#addParted(at) ? 1 : 0
  }

  /** Adds the phrases with a gap that begin at an index. Their everyday words are then ignored. */
  #addGapped (at: number): void {
    for (const { term, places } of this.#lexicon.gapped(this.#carrying, at)) {
      this.#concepts.add([{ term, weight: 1 }], 1)
      for (const place of places) if (this.#isEveryday(this.#words[place] ?? '')) this.#said.add(place)
    }
  }

  /** Adds a verb whose particle is separated from it: `turn the lights off`. */
  #addParted (at: number): boolean {
    const { english, foreign } = particlesOf(this.#words, at)
    const term = english === undefined ? undefined : this.#phrase([this.#stems[at] ?? '', this.#stems[english] ?? ''])
    if (term !== undefined && english !== undefined) {
      this.#said.add(english)
      this.#concepts.add([{ term, weight: 1 }], 1)
      return true
    }
    const particle = foreign === undefined ? undefined : this.#words[foreign]
    if (foreign === undefined || particle === undefined || this.#languages.size === 0) return false
    const meanings =
      this.#foreign(`${particle}${this.#words[at] ?? ''}`).filter(({ language }) => this.#languages.has(language))
    if (meanings.length === 0) return false
    this.#said.add(at).add(foreign)
    this.#concepts.add(meanings.map((meaning) => this.#lexicon.translated(meaning)), 1)
    this.text.push(meanings[0]?.english ?? '')
    return true
  }

  /** The multi-word term of these stems; undefined: the lexicon has none. */
  #phrase (stems: readonly string[]): string | undefined {
    const term = stems.length > this.#lexicon.longestPhrase ? '' : stems.join('')
    return this.#lexicon.isPhrase(term) ? term : undefined
  }

  /** The multi-word term that occurs here in another form or with ignored words in between. */
  #carriedBy (at: number, length: number): string | undefined {
    if (this.#carrying[at] === undefined || this.#carrying[at + length - 1] === undefined) return undefined
    const words = this.#carrying.slice(at, at + length).filter((word) => word !== undefined)
    const isPhrase = words.length > 1 && words.length <= this.#lexicon.longestPhrase
    return isPhrase ? this.#lexicon.carriedBy(words.join('')) : undefined
  }

  #addWord (at: number, factor: number): void {
    const word = this.#words[at] ?? ''
    const term = this.#stems[at] ?? ''
    if (stopWords.has(word) || isUnspaced(word) || this.#said.has(at)) return
    const isStop = this.#lexicon.stopLanguages(word).some((language) => this.#languages.has(language))
    const isKnown = this.#compounds.isKnown(term)
    if (isStop) return
    const near = this.#doubts.isDoubtful(word, this.#languages) ? this.#doubts.near(word) : []
    if (near.length > 0 && !this.#isCompound(word)) {
      this.#addMisspelled(word, near, factor)
      return
    }
    const foreign = this.#foreign(word)
    const isForeign = foreign.length > 0 && (!isKnown || foreign.some(({ language }) => this.#languages.has(language)))
    if (isForeign) {
      const variants = foreign.map((meaning) => this.#lexicon.translated(meaning))
      this.#concepts.add(isKnown ? [{ term, weight: 1 }, ...variants] : variants, factor)
      this.text.push(foreign[0]?.english ?? word)
    } else if (isKnown) {
      const everyday = this.#lexicon.isCommon(word) ? tuning.everyday : lightVerbs.has(word) ? tuning.light : 1
      this.#concepts.add([{ term, weight: 1 }], factor * everyday)
      this.text.push(word)
    } else if (this.#lexicon.isCommon(word)) this.text.push(word)
    else this.#addUnknown(word, factor)
  }

  /** Adds an unknown word: a compound, a misspelling or the beginning of a word. */
  #addUnknown (word: string, factor: number): void {
    const parts = this.#compounds.split(word, 3)
    if (parts) {
      for (const part of parts) this.#concepts.add(this.#meanings(part), factor * tuning.part)
      this.text.push(...parts.map((part) => this.#foreign(part)[0]?.english ?? part))
      return
    }
    this.#addMisspelled(
      word, this.#misspelled++ < bounds.misspelled ? similarWords(word, this.#vocabulary, this.#lexicon) : [], factor
    )
  }

  /** Adds a misspelled word as its corrections, and as the words that begin with it. */
  #addMisspelled (word: string, similar: readonly Variant[], factor: number): void {
    const begun = word.length < 3
      ? []
      : this.#vocabulary.beginning(word, 6).map(({ term }) => ({ term, weight: tuning.beginning }))
    const others = begun.filter(({ term }) => !similar.some((each) => each.term === term))
    this.#concepts.add([...others, ...similar], factor)
    const [best] = similar
    this.text.push(best && others.length === 0
      ? this.#lexicon.words.get(best.term) ?? this.#vocabulary.get(best.term)?.word ?? word
      : word)
  }

  /** The terms of a known word: itself, or its translations. */
  #meanings (word: string): Variant[] {
    const term = stemOf(word)
    const foreign = this.#foreign(word)
    return foreign.length > 0 && !this.#compounds.isKnown(term)
      ? foreign.map((meaning) => this.#lexicon.translated(meaning))
      : [{ term, weight: 1 }]
  }
}
