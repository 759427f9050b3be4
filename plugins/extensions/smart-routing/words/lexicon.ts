import { pushTo } from '../../../../protocol/grouping.ts'
import { LoopBudget } from '../../../../protocol/yield.ts'
import { loadOnce, readAsset } from '../../../base/config/index.ts'
import { stopWords } from './stop-words.ts'
import { stemOf } from './stem.ts'
import { foldCaseAndAccents, hasUnspacedScript, wordsOf } from './tokens.ts'
import { tuning } from './tuning.ts'
import { letterBits, WordList } from './typos.ts'

/** A term that can stand for another term. `weight`: its value relative to an exact match, from 0 to 1. */
export interface Variant { readonly term: string, readonly weight: number }
/** An English meaning of a word of another `language`, in words (`english`) and as a term. */
export interface EnglishMeaning { readonly language: string, readonly english: string, readonly term: string }

/**
 * The content of the file of English terms. `common`: everyday words, separated by spaces. `same`: groups of spellings
 * with one meaning. `synonyms`: groups whose first term is the main synonym. Commas separate the terms of a group.
 */
interface DomainFile { common: string, same: string[], synonyms: string[] }
/**
 * The content of the file of another language. `stop`: its stop words, separated by spaces. `words`: for each English
 * text, the words for it in the language, comma-separated; `word*` also stands for longer words that begin with `word`.
 */
interface LanguageFile { language: string, stop: string, words: Record<string, string> }

const languages = ['de', 'es', 'fr', 'pt', 'it', 'nl', 'pl', 'sv', 'tr', 'ru', 'zh', 'ja', 'ko']
/** Max number of letters that `*` stands for in `word*` of a language file. */
const maxEndingLength = 5
/** Max number of characters of a word in a script without spaces. */
const maxUnspacedLength = 8

/** A thesaurus of English terms, with translations. A term is a stem, or several stems joined: `pullrequest`. */
export class Lexicon {
  /** By term, the groups of spellings that contain it. */
  readonly #equivalents = new Map<string, string[][]>()
  /** By term, the groups of synonyms that contain it. */
  readonly #synonyms = new Map<string, string[][]>()
  /** By stop word, the languages that have it. */
  readonly #stopWords = new Map<string, string[]>()
  /** The meanings of whole words and phrases of other languages. */
  readonly #foreign = new Map<string, EnglishMeaning[]>()
  /** The meanings of beginnings of words of other languages. */
  readonly #beginnings = new Map<string, EnglishMeaning[]>()
  /** The meanings of words in scripts without spaces. */
  readonly #unspaced = new Map<string, EnglishMeaning[]>()
  readonly #commonWords = new Set<string>()
  /** The English words of the files, unstemmed. */
  readonly #englishWords = new Set<string>()
  /** An unstemmed English word for each stem. */
  readonly wordByStem = new Map<string, string>()
  /** The words of `wordByStem`, by length. */
  readonly #byLength = new Map<number, WordList>()

  addDomain ({ common, same, synonyms }: DomainFile): void {
    for (const word of common.split(' ')) this.#commonWords.add(word)
    for (const line of same) this.#addGroup(this.#equivalents, line)
    for (const line of synonyms) this.#addGroup(this.#synonyms, line)
  }

  addLanguage ({ language, stop, words }: LanguageFile): void {
    for (const word of stop.split(' ')) pushTo(this.#stopWords, foldCaseAndAccents(word), language)
    for (const [english, list] of Object.entries(words)) {
      const foreign = { language, english, term: this.#termOf(english) }
      for (const item of list.split(',')) this.#addForeign(item.trim(), foreign)
    }
  }

  #addForeign (item: string, foreign: EnglishMeaning): void {
    if (hasUnspacedScript(item)) pushTo(this.#unspaced, item, foreign)
    else pushTo(item.endsWith('*') ? this.#beginnings : this.#foreign, wordsOf(item, 8, false).join(' '), foreign)
  }

  #addGroup (groups: Map<string, string[][]>, line: string): void {
    const terms = [...new Set(line.split(',').map((word) => this.#termOf(word)))]
    for (const term of terms) pushTo(groups, term, terms)
  }

  #termOf (text: string): string {
    const list = wordsOf(text, 8, false)
    for (const word of list) this.#englishWords.add(word)
    const term = list.map(stemOf).join('')
    const [word] = list
    if (list.length !== 1 || word === undefined || this.wordByStem.has(term)) return term
    this.wordByStem.set(term, word)
    let words = this.#byLength.get(word.length)
    if (!words) this.#byLength.set(word.length, words = new WordList())
    words.add({ word, term, bits: letterBits(word) })
    return term
  }

  /** Whether an English term is in a group of spellings or synonyms. */
  knows (term: string): boolean { return this.#equivalents.has(term) || this.#synonyms.has(term) }

  /**
   * Whether a word is an English word of the lexicon, or an inflection of one. Comparing stems would not suffice: the
   * misspelled `invoce` has the stem of `invocation`.
   */
  isEnglishWord (word: string): boolean {
    const bare = word.replace(/(?:ing|ed)$/, '')
    return [
      word, `${word}s`, word.replace(/e?s$/, ''), word.replace(/[sd]$/, ''), word.replace(/ie[sd]$/, 'y'), bare,
      bare === word ? word : `${bare}e`
    ].some((form) => this.#englishWords.has(form))
  }

  /** Whether a word is an everyday word or a stop word. Such a word is never treated as a typo. */
  isCommon (word: string): boolean { return this.#commonWords.has(word) || stopWords.has(word) }

  /** Returns the English words of a given length; undefined if there are none. */
  wordsOfLength (length: number): WordList | undefined { return this.#byLength.get(length) }

  /** Returns the synonyms and other spellings of a term, without the term itself, best first. */
  variants (term: string): Variant[] {
    const found = new Map<string, number>()
    const add = (other: string, weight: number): void => {
      if (other !== term && weight > (found.get(other) ?? 0)) found.set(other, weight)
    }
    for (const spelling of [term, ...(this.#equivalents.get(term) ?? []).flat()]) {
      const factor = spelling === term ? 1 : tuning.same
      if (factor < 1) add(spelling, factor)
      for (const group of this.#synonyms.get(spelling) ?? []) {
        const isHead = group[0] === spelling
        for (const [i, other] of group.entries()) {
          add(other, factor * (isHead || i === 0 ? tuning.synonym : tuning.sharedSynonym))
        }
      }
    }
    return [...found].map(([term, weight]) => ({ term, weight })).sort((a, b) => b.weight - a.weight)
  }

  /** Returns the languages in which a word is a stop word. */
  languagesWithStopWord (word: string): readonly string[] { return this.#stopWords.get(word) ?? [] }

  /** Returns the English meanings that a word, or several words joined by spaces, have in any of the languages. */
  meaningsOf (text: string): readonly EnglishMeaning[] {
    for (const spelling of [text, text.replace(/([aou])e/g, '$1')]) {
      const found = [...this.#foreign.get(spelling) ?? [], ...this.#findByBeginning(spelling)]
      if (found.length > 0) return found
    }
    return []
  }

  /** Whether the file of any other language has exactly this word; a matching `word*` is not enough. */
  isForeign (word: string): boolean { return this.#foreign.has(word) }

  #findByBeginning (word: string): readonly EnglishMeaning[] {
    for (let length = word.length; length >= Math.max(3, word.length - maxEndingLength); length--) {
      const found = this.#beginnings.get(word.slice(0, length))
      if (found) return word.includes(' ', length) ? [] : found
    }
    return []
  }

  /**
   * Splits a text in a script without spaces into known words, the longest at each position.
   * @returns the meanings of each word
   */
  splitUnspaced (text: string): EnglishMeaning[][] {
    const found: EnglishMeaning[][] = []
    const characters = [...text]
    for (let at = 0; at < characters.length;) {
      let length = Math.min(maxUnspacedLength, characters.length - at)
      for (; length > 0; length--) {
        const word = this.#unspaced.get(characters.slice(at, at + length).join(''))
        if (!word) continue
        found.push(word)
        break
      }
      at += Math.max(1, length)
    }
    return found
  }
}

/** Loads the lexicon from `assets/lexicons/` at the first call, in steps. @throws if a file is missing or invalid */
export const loadLexicon = loadOnce(async () => {
  const lexicon = new Lexicon()
  const budget = new LoopBudget()
  lexicon.addDomain(JSON.parse(await readAsset('lexicons/trade.json')) as DomainFile)
  for (const language of languages) {
    if (budget.isSpent) await budget.yieldToEventLoop()
    lexicon.addLanguage(JSON.parse(await readAsset(`lexicons/${language}.json`)) as LanguageFile)
  }
  return lexicon
})
