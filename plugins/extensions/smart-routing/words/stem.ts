// Stems of English words, after M. F. Porter: An algorithm for suffix stripping (1980).
import { runsOf, wordsOf } from './tokens.ts'
import { extensionsLimits } from '../../limits.ts'

const consonant = '[^aeiou]'
const vowel = '[aeiouy]'
const consonants = `${consonant}[^aeiouy]*`
const vowels = `${vowel}[aeiou]*`
/** At least one, exactly one, at least two changes from vowels to consonants; a vowel at all. */
const measured = new RegExp(`^(${consonants})?${vowels}${consonants}`)
const measuredOnce = new RegExp(`^(${consonants})?${vowels}${consonants}(${vowels})?$`)
const measuredTwice = new RegExp(`^(${consonants})?${vowels}${consonants}${vowels}${consonants}`)
const hasVowel = new RegExp(`^(${consonants})?${vowel}`)
const shortEnd = new RegExp(`^${consonants}${vowel}[^aeiouwxy]$`)

const derived: Array<[RegExp, string]> = [
  [/^(.+?)(ational|ate)$/, 'ate'], [/^(.+?)tional$/, 'tion'], [/^(.+?)(enci|ence)$/, 'ence'],
  [/^(.+?)(anci|ance)$/, 'ance'],
  [/^(.+?)(izer|ization)$/, 'ize'], [/^(.+?)(bli)$/, 'ble'], [/^(.+?)(alli|alism|aliti)$/, 'al'],
  [/^(.+?)entli$/, 'ent'],
  [/^(.+?)eli$/, 'e'], [/^(.+?)(ousli|ousness)$/, 'ous'], [/^(.+?)(ation|ator)$/, 'ate'],
  [/^(.+?)(iveness|iviti)$/, 'ive'],
  [/^(.+?)fulness$/, 'ful'], [/^(.+?)biliti$/, 'ble'], [/^(.+?)logi$/, 'log'],
  [/^(.+?[cdeghkmnrtw])li$/, '']
]
const adjectives: Array<[RegExp, string]> = [
  [/^(.+?)(icate|iciti|ical)$/, 'ic'], [/^(.+?)(ative|ful|ness)$/, ''], [/^(.+?)alize$/, 'al']
]
const endings = /^(.+?)(al|ance|ence|er|ic|able|ible|ant|ement|ment|ent|ou|ism|ate|iti|ous|ive|ize)$/
const ionEnding = /^(.+?[st])ion$/

/** @param word in lower case @returns its stem; the word itself if it is short or holds other letters than a to z */
function stem (word: string): string {
  const own = exceptions.get(word)
  if (own !== undefined) return own
  if (word.length < 3 || !/^[a-z]+$/.test(word)) return word
  let stemmed = word.startsWith('y') ? `Y${word.slice(1)}` : word
  stemmed = singularOf(stemmed)
  stemmed = verbEnding(stemmed)
  const y = /^(.+?)y$/.exec(stemmed)?.[1]
  if (y !== undefined && hasVowel.test(y)) stemmed = `${y}i`
  stemmed = replaced(replaced(stemmed, derived), adjectives)
  const base = (endings.exec(stemmed) ?? ionEnding.exec(stemmed))?.[1]
  if (base !== undefined && measuredTwice.test(base)) stemmed = base
  const e = /^(.+?)e$/.exec(stemmed)?.[1]
  if (e !== undefined && (measuredTwice.test(e) || (measuredOnce.test(e) && !shortEnd.test(e)))) stemmed = e
  if (stemmed.endsWith('ll') && measuredTwice.test(stemmed)) stemmed = stemmed.slice(0, -1)
  return stemmed.toLowerCase()
}

/** A word without the ending of a plural; `i` stays of `ies`. */
export function singularOf (word: string): string {
  if (/(ss|i)es$/.test(word)) return word.slice(0, -2)
  return /[^s]s$/.test(word) ? word.slice(0, -1) : word
}

function verbEnding (word: string): string {
  const eed = /^(.+?)eed$/.exec(word)?.[1]
  if (eed !== undefined) return measured.test(eed) ? word.slice(0, -1) : word
  const base = /^(.+?)(ed|ing)$/.exec(word)?.[1]
  if (base === undefined || !hasVowel.test(base)) return word
  if (/(at|bl|iz)$/.test(base)) return `${base}e`
  if (/([^aeiouylsz])\1$/.test(base)) return base.slice(0, -1)
  return shortEnd.test(base) ? `${base}e` : base
}

/** The first ending that fits is replaced, if enough is left before it. */
function replaced (word: string, rules: Array<[RegExp, string]>): string {
  for (const [ending, by] of rules) {
    const base = ending.exec(word)?.[1]
    if (base !== undefined) return measured.test(base) ? base + by : word
  }
  return word
}

/** Words that the rules throw together with others of another meaning. */
const exceptions = new Map<string, string>([
  'news', 'customer', 'terminal', 'container', 'general', 'generic', 'important', 'internal', 'international',
  'author', 'authority',
  'engineer', 'community', 'department', 'apartment', 'university', 'several', 'organ', 'instant', 'former', 'hospital'
].flatMap((word) => [[word, word], [`${word.replace(/y$/, 'ie')}s`, word]]))

/** A word as it was written, folded, and its stem, which is what is compared. */
export interface WordToken {
  readonly word: string
  readonly term: string
  /** The number of the term among those of the cache: terms are counted in an array, which costs less than a map. */
  readonly number: number
  /**
   * The terms of several words that begin with it, by what follows, as the lexicon says; null: none; undefined: it was
   * not asked yet.
   */
  joined: ReadonlyMap<string, WordToken> | null | undefined
  /** Whether it follows another word in a term of several words; undefined: it was not asked yet. */
  follows: boolean | undefined
}

const tokens = new Map<string, WordToken>()
const numbers = new Map<string, number>()
/** The words of what stands between spaces and signs, as it was written: most of a text was seen before. */
const runs = new Map<string, readonly WordToken[]>()

/**
 * A word with its stem, from a cache: the same word gives the same object, so that an index of many tools holds it
 * once.
 */
export function tokenOf (word: string): WordToken {
  const known = tokens.get(word)
  if (known) return known
  const own = copyOf(word)
  const term = stem(own)
  const number = numbers.get(term) ?? numbers.size
  numbers.set(term, number)
  const token: WordToken = { word: own, term, number, joined: undefined, follows: undefined }
  tokens.set(own, token)
  return token
}

/** The words of a text, as `wordsOf` finds them, from the cache. @param max the most */
export function tokensOf (text: string, max: number): WordToken[] {
  const found: WordToken[] = []
  for (const run of runsOf(text)) {
    if (found.length >= max) break
    let tokens = runs.get(run)
    if (!tokens) runs.set(copyOf(run), tokens = wordsOf(run, Infinity).map(tokenOf))
    for (const token of tokens) found.push(token)
  }
  if (found.length > max) found.length = max
  return found
}

/** The words of short texts that many tools have, such as descriptions of parameters. */
const texts = new Map<string, readonly WordToken[]>()

/** The words of several texts, from the cache. @param max the most */
export function tokensOfAll (parts: readonly string[], max: number): WordToken[] {
  const found: WordToken[] = []
  for (const part of parts) {
    if (found.length >= max) break
    let words = texts.get(part)
    if (!words) {
      if (texts.size >= extensionsLimits.wordSearch.cachedTexts) texts.clear()
      texts.set(copyOf(part), words = tokensOf(part, Infinity))
    }
    for (const token of words) found.push(token)
  }
  if (found.length > max) found.length = max
  return found
}

/** A part of a long text would keep the whole text in memory. */
const copyOf = (text: string): string => text.length < 13 ? text : ` ${text}`.slice(1)

/** Empties the cache when it is full. Numbers of terms are given anew then: it is called when nobody counts by them. */
export function forgetWords (): void {
  if (Math.max(tokens.size, runs.size) < extensionsLimits.wordSearch.cachedWords) return
  tokens.clear()
  runs.clear()
  texts.clear()
  numbers.clear()
}

export const stemOf = (word: string): string => tokenOf(word).term
