import type { LoopBudget } from '../../../../protocol/yield.ts'
import { stopWords } from './common-words.ts'
import { carrying, placesOf } from './phrases.ts'
import { stemOf, tokenOf, type WordToken } from './stem.ts'
import { fold, wordsOf } from './tokens.ts'
import { tuning } from './tuning.ts'
import { letters, WordList } from './typos.ts'

/** A term that can stand for another one; `weight`: its value relative to an exact match. */
export interface Variant { readonly term: string, readonly weight: number }
/** The English meaning of a foreign word, in words. */
export interface Foreign { readonly language: string, readonly english: string }

/** A phrase with a gap for any words: `what does … say`. */
interface Gapped { readonly before: readonly string[], readonly after: readonly string[], readonly term: string }

export interface TradeFile { common: string, same: string[], synonyms: string[], hints: string[] }
export interface LanguageFile { language: string, stop: string, words: Record<string, string> }
/** Max number of letters that `*` stands for in `word*`. */
const longestEnding = 5
/** Max number of words that `…` stands for. */
const longestGap = 6

/**
 * The domain vocabulary with its synonyms and translations. A term is a stem, or several stems joined: `pullrequest`.
 */
export class Lexicon {
  readonly #same = new Map<string, string[][]>()
  readonly #synonyms = new Map<string, string[][]>()
  readonly #hints = new Map<string, string[]>()
  /** Cache of terms, by their text in the lexicon files. */
  readonly #terms = new Map<string, string>()
  /** The stems of each multi-word term. */
  readonly #parts = new Map<string, string[]>()
  /** For the first stem of multi-word terms: the joined rest of each term. */
  readonly #continuations = new Map<string, Set<string>>()
  /** The joined rests of all multi-word terms. */
  readonly #following = new Set<string>()
  /** Multi-word terms by their normalised words (`carrying`), joined. */
  readonly #carried = new Map<string, string>()
  /** Phrases with a gap, by their normalised first word (`carrying`). */
  readonly #gapped = new Map<string, Gapped[]>()
  readonly #stop = new Map<string, string[]>()
  readonly #foreign = new Map<string, Foreign[]>()
  readonly #beginnings = new Map<string, Foreign[]>()
  readonly #unspaced = new Map<string, Foreign[]>()
  readonly #common = new Set<string>()
  readonly #plain = new Set<string>()
  /** All English words of the lexicons, unstemmed. */
  readonly #written = new Set<string>()
  /** An unstemmed English word for each stem. */
  readonly words = new Map<string, string>()
  readonly #byLength = new Map<number, WordList>()
  readonly longestPhrase = 5

  /** Adds the English lexicon. Yields to the event loop, since there are thousands of words. */
  async addTrade ({ common, same, synonyms, hints }: TradeFile, budget: LoopBudget): Promise<void> {
    for (const word of common.split(' ')) this.#common.add(word)
    for (const word of [...this.#common, ...stopWords]) this.#plain.add(stemOf(word))
    for (const [lines, add] of [
      [same, (line: string) => { this.#addGroup(this.#same, line) }],
      [synonyms, (line: string) => { this.#addGroup(this.#synonyms, line) }],
      [hints, (line: string) => { this.#addHints(line) }]
    ] as const) {
      for (const line of lines) {
        add(line)
        if (budget.isSpent) await budget.yieldToEventLoop()
      }
    }
  }

  #addHints (line: string): void {
    const [from = '', to = ''] = line.split(':')
    const targets = [...new Set(to.split(',').map((word) => this.#termOf(word)))]
    for (const word of from.split(',')) {
      const term = word.includes('…') ? this.#gappedTermOf(word) : this.#termOf(word)
      const others = this.#hints.get(term)
      // All phrases of a line share one list, to save memory.
      this.#hints.set(term, others ? [...new Set([...others, ...targets])] : targets)
    }
  }

  async addLanguage ({ language, stop, words }: LanguageFile, budget: LoopBudget): Promise<void> {
    for (const word of stop.split(' ')) push(this.#stop, fold(word), language)
    for (const [english, list] of Object.entries(words)) {
      this.#termOf(english)
      for (const item of list.split(',')) this.#addForeign(item.trim(), { language, english })
      if (budget.isSpent) await budget.yieldToEventLoop()
    }
  }

  #addForeign (item: string, foreign: Foreign): void {
    const isBeginning = item.endsWith('*')
    if (/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u.test(item)) {
      return push(this.#unspaced, item, foreign)
    }
    const words = wordsOf(item, 8, false)
    const key = words.join(' ')
    push(isBeginning ? this.#beginnings : this.#foreign, key, foreign)
  }

  #addGroup (groups: Map<string, string[][]>, line: string): void {
    const terms = [...new Set(line.split(',').map((word) => this.#termOf(word)))]
    for (const term of terms) push(groups, term, terms)
  }

  #gappedTermOf (words: string): string {
    const carried = (part: string): string[] =>
      wordsOf(part, 8, false).flatMap((word) => carrying(word, stemOf(word)) ?? [])
    const [before = [], after = []] = words.split('…').map(carried)
    const term = `${before.join(' ')} … ${after.join(' ')}`
    if (before[0] !== undefined && after.length > 0) push(this.#gapped, before[0], { before, after, term })
    return term
  }

  #termOf (words: string): string {
    const known = this.#terms.get(words)
    if (known !== undefined) return known
    const list = wordsOf(words, 8, false)
    for (const word of list) this.#written.add(word)
    const stems = list.map(stemOf)
    const term = stems.join('')
    this.#terms.set(words, term)
    if (stems.length > 1) {
      this.#parts.set(term, stems)
      const carried = list.flatMap((word, i) => carrying(word, stems[i] ?? '') ?? [])
      const key = carried.join('')
      if (carried.length > 1 && !this.#carried.has(key)) this.#carried.set(key, term)
      const [first = ''] = stems
      const rest = term.slice(first.length)
      const continuations = this.#continuations.get(first)
      if (continuations) continuations.add(rest)
      else this.#continuations.set(first, new Set([rest]))
      this.#following.add(rest)
    }
    if (stems.length === 1 && list[0] !== undefined && !this.words.has(term)) {
      this.words.set(term, list[0])
      let words = this.#byLength.get(list[0].length)
      if (!words) this.#byLength.set(list[0].length, words = new WordList())
      words.add({ word: list[0], term, bits: letters(list[0]) })
    }
    return term
  }

  /** Whether the lexicon has this English term. */
  knows (term: string): boolean { return this.#same.has(term) || this.#synonyms.has(term) || this.#hints.has(term) }

  /**
   * Whether this is the written form of an English word, or a regular inflection of one. Stems cannot tell: `invoce`
   * has the stem of `invocation`.
   */
  isWritten (word: string): boolean {
    if (this.#common.has(word)) return true
    const bare = word.replace(/(?:ing|ed)$/, '')
    const forms = [
      word, `${word}s`, word.replace(/e?s$/, ''), word.replace(/[sd]$/, ''), word.replace(/ie[sd]$/, 'y'), bare
    ]
    if (bare !== word) forms.push(`${bare}e`)
    return forms.some((form) => this.#written.has(form))
  }

  /** Whether it is an everyday word, which is never treated as a typo. */
  isCommon (word: string): boolean { return this.#common.has(word) }

  /** Whether a term comes from an everyday word or a stop word. */
  isPlain (term: string): boolean { return this.#plain.has(term) }

  /** The English words of a given length. */
  ofLength (length: number): WordList | undefined { return this.#byLength.get(length) }

  /** Whether these joined stems are a multi-word term. */
  isPhrase (term: string): boolean { return this.#parts.has(term) && this.knows(term) }

  /**
   * The multi-word term with these normalised words.
   * @param key words as `carrying` returns them, joined
   */
  carriedBy (key: string): string | undefined {
    const term = this.#carried.get(key)
    return term !== undefined && this.knows(term) ? term : undefined
  }

  /**
   * The phrases with a gap that begin at an index.
   * @param words as `carrying` returns them
   * @returns each phrase with the indexes of its words
   */
  * gapped (words: ReadonlyArray<string | undefined>, at: number): Iterable<{ term: string, places: number[] }> {
    for (const { before, after, term } of this.#gapped.get(words[at] ?? '') ?? []) {
      const places = placesOf(before, words, at)
      const last = places?.at(-1)
      for (let from = (last ?? words.length) + 2; from < words.length && from <= (last ?? 0) + 1 + longestGap; from++) {
        const others = words[from] === after[0] ? placesOf(after, words, from) : undefined
        if (!places || !others) continue
        yield { term, places: [...places, ...others] }
        break
      }
    }
  }

  /** The multi-word term that two terms form; undefined: none. */
  joined (first: WordToken, second: WordToken): WordToken | undefined {
    second.follows ??= this.#following.has(second.term)
    if (!second.follows) return undefined
    if (first.joined === undefined) {
      const continuations = this.#continuations.get(first.term)
      first.joined =
        continuations ? new Map([...continuations].map((rest) => [rest, tokenOf(first.term + rest)])) : null
    }
    return first.joined?.get(second.term)
  }

  partsOf (term: string): readonly string[] | undefined { return this.#parts.get(term) }

  /** The synonyms and spellings of a term, without the term itself; best first. */
  variants (term: string): Variant[] {
    const found = new Map<string, number>()
    const add = (other: string, weight: number): void => {
      if (other !== term && weight > (found.get(other) ?? 0)) found.set(other, weight)
    }
    const spellings = [term, ...(this.#same.get(term) ?? []).flat()]
    for (const spelling of spellings) {
      const factor = spelling === term ? 1 : tuning.same
      if (factor < 1) add(spelling, factor)
      for (const group of this.#synonyms.get(spelling) ?? []) {
        const isHead = group[0] === spelling
        for (const [i, other] of group.entries()) {
          add(other, factor * (isHead || i === 0 ? tuning.synonym : tuning.fellow))
        }
      }
    }
    return [...found].map(([term, weight]) => ({ term, weight })).sort((a, b) => b.weight - a.weight)
  }

  /** Terms that the use of a term suggests. */
  hints (term: string): readonly string[] { return this.#hints.get(term) ?? [] }

  /** The languages in which a word is a stop word. */
  stopLanguages (word: string): readonly string[] { return this.#stop.get(word) ?? [] }

  /** The meanings of a word, or of several words joined by spaces, in all languages. */
  foreign (word: string): readonly Foreign[] {
    for (const spelling of spellings(word)) {
      const exact = this.#foreign.get(spelling)
      const begun = this.#begun(spelling)
      if (exact ?? begun) return [...exact ?? [], ...begun ?? []]
    }
    return []
  }

  /** Whether a language has exactly this word; a common beginning is not enough. */
  isForeign (word: string): boolean { return [...spellings(word)].some((spelling) => this.#foreign.has(spelling)) }

  #begun (word: string): Foreign[] | undefined {
    for (let length = word.length; length >= Math.max(3, word.length - longestEnding); length--) {
      const found = this.#beginnings.get(word.slice(0, length))
      if (found) return word.includes(' ', length) ? undefined : found
    }
    return undefined
  }

  /**
   * Splits text in a script without spaces into words, preferring the longest at each position. @returns the meanings
   * of each word
   */
  unspaced (text: string): Foreign[][] {
    const found: Foreign[][] = []
    const characters = [...text]
    for (let at = 0; at < characters.length;) {
      let length = Math.min(8, characters.length - at)
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

  /** An English meaning as a term, with the weight of a translation. */
  translated ({ english }: Foreign): Variant { return { term: this.#termOf(english), weight: tuning.translation } }
}

function * spellings (word: string): Iterable<string> {
  yield word
  if (/[aou]e/.test(word)) yield word.replace(/([aou])e/g, '$1')
}

function push<K, V> (map: Map<K, V[]>, key: K, value: V): void {
  const list = map.get(key)
  if (list) list.push(value)
  else map.set(key, [value])
}
