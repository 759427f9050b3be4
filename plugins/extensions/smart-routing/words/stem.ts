// Stems English words by the Porter algorithm: M. F. Porter, An algorithm for suffix stripping (1980).
import { alphanumericRuns, wordsOf } from './tokens.ts'
import { extensionsLimits } from '../../limits.ts'

const consonant = '[^aeiou]'
const vowel = '[aeiouy]'
const consonants = `${consonant}[^aeiouy]*`
const vowels = `${vowel}[aeiou]*`
/** Matches a stem with a measure above 0. Porter's measure: how many groups of vowels are followed by consonants. */
const measureAbove0 = new RegExp(`^(${consonants})?${vowels}${consonants}`)
/** Matches a stem with the measure 1. */
const measureIs1 = new RegExp(`^(${consonants})?${vowels}${consonants}(${vowels})?$`)
/** Matches a stem with a measure above 1. */
const measureAbove1 = new RegExp(`^(${consonants})?${vowels}${consonants}${vowels}${consonants}`)
/** Matches a stem with a vowel. */
const hasVowel = new RegExp(`^(${consonants})?${vowel}`)
/** Matches a stem of one or more consonants, one vowel, and one consonant other than w, x and y. */
const shortEnd = new RegExp(`^${consonants}${vowel}[^aeiouwxy]$`)

const derivationalEndings: Array<[RegExp, string]> = [
  [/^(.+?)(ational|ate)$/, 'ate'], [/^(.+?)tional$/, 'tion'], [/^(.+?)(enci|ence)$/, 'ence'],
  [/^(.+?)(anci|ance)$/, 'ance'],
  [/^(.+?)(izer|ization)$/, 'ize'], [/^(.+?)(bli)$/, 'ble'], [/^(.+?)(alli|alism|aliti)$/, 'al'],
  [/^(.+?)entli$/, 'ent'],
  [/^(.+?)eli$/, 'e'], [/^(.+?)(ousli|ousness)$/, 'ous'], [/^(.+?)(ation|ator)$/, 'ate'],
  [/^(.+?)(iveness|iviti)$/, 'ive'],
  [/^(.+?)fulness$/, 'ful'], [/^(.+?)biliti$/, 'ble'], [/^(.+?)logi$/, 'log'],
  [/^(.+?[cdeghkmnrtw])li$/, '']
]
const adjectiveEndings: Array<[RegExp, string]> = [
  [/^(.+?)(icate|iciti|ical)$/, 'ic'], [/^(.+?)(ative|ful|ness)$/, ''], [/^(.+?)alize$/, 'al']
]
const endings = /^(.+?)(al|ance|ence|er|ic|able|ible|ant|ement|ment|ent|ou|ism|ate|iti|ous|ive|ize)$/
const ionEnding = /^(.+?[st])ion$/

/** Returns the stem of a word in lower case; the word itself if it is short or has characters other than a to z. */
function stem (word: string): string {
  const own = exceptions.get(word)
  if (own !== undefined) return own
  if (word.length < 3 || !/^[a-z]+$/.test(word)) return word
  let stemmed = word.startsWith('y') ? `Y${word.slice(1)}` : word
  stemmed = withoutPluralEnding(stemmed)
  stemmed = withoutVerbEnding(stemmed)
  const y = /^(.+?)y$/.exec(stemmed)?.[1]
  if (y !== undefined && hasVowel.test(y)) stemmed = `${y}i`
  stemmed = replaceEnding(replaceEnding(stemmed, derivationalEndings), adjectiveEndings)
  const base = (endings.exec(stemmed) ?? ionEnding.exec(stemmed))?.[1]
  if (base !== undefined && measureAbove1.test(base)) stemmed = base
  const e = /^(.+?)e$/.exec(stemmed)?.[1]
  if (e !== undefined && (measureAbove1.test(e) || (measureIs1.test(e) && !shortEnd.test(e)))) stemmed = e
  if (stemmed.endsWith('ll') && measureAbove1.test(stemmed)) stemmed = stemmed.slice(0, -1)
  return stemmed.toLowerCase()
}

/** Removes the plural ending (step 1a of the algorithm); `ies` becomes `i`. */
export function withoutPluralEnding (word: string): string {
  if (/(ss|i)es$/.test(word)) return word.slice(0, -2)
  return /[^s]s$/.test(word) ? word.slice(0, -1) : word
}

function withoutVerbEnding (word: string): string {
  const eed = /^(.+?)eed$/.exec(word)?.[1]
  if (eed !== undefined) return measureAbove0.test(eed) ? word.slice(0, -1) : word
  const base = /^(.+?)(ed|ing)$/.exec(word)?.[1]
  if (base === undefined || !hasVowel.test(base)) return word
  if (/(at|bl|iz)$/.test(base)) return `${base}e`
  if (/([^aeiouylsz])\1$/.test(base)) return base.slice(0, -1)
  return shortEnd.test(base) ? `${base}e` : base
}

/** Replaces the first matching ending, unless the measure of the rest of the word is 0. */
function replaceEnding (word: string, rules: Array<[RegExp, string]>): string {
  for (const [ending, by] of rules) {
    const base = ending.exec(word)?.[1]
    if (base !== undefined) return measureAbove0.test(base) ? base + by : word
  }
  return word
}

/**
 * Words that the algorithm would conflate with words of another meaning, and their plurals; each is mapped to the
 * singular, which is used instead of a stem.
 */
const exceptions = new Map<string, string>([
  'news', 'customer', 'terminal', 'container', 'general', 'generic', 'important', 'internal', 'international',
  'author', 'authority',
  'engineer', 'community', 'department', 'apartment', 'university', 'several', 'organ', 'instant', 'former', 'hospital'
].flatMap((word) => [[word, word], [`${word.replace(/y$/, 'ie')}s`, word]]))

/** A word in lower case without accents, and its stem (`term`), by which words are compared. */
export interface WordToken {
  readonly word: string
  readonly term: string
  /** The number of the term in the cache, for counting terms in an array, which is faster than in a map. */
  readonly number: number
}

const tokens = new Map<string, WordToken>()
const numbers = new Map<string, number>()
/** Cache of the words of each run of letters and digits, since most runs occur many times. */
const runs = new Map<string, readonly WordToken[]>()

/** Returns a word with its stem, from a cache. Equal words share one object, which keeps large indexes small. */
export function tokenOf (word: string): WordToken {
  const known = tokens.get(word)
  if (known) return known
  const own = copyOf(word)
  const term = stem(own)
  const number = numbers.get(term) ?? numbers.size
  numbers.set(term, number)
  const token: WordToken = { word: own, term, number }
  tokens.set(own, token)
  return token
}

/** Returns the words of a text, as split by `wordsOf`, from the cache. @param max max number of words */
export function tokensOf (text: string, max: number): WordToken[] {
  const found: WordToken[] = []
  for (const run of alphanumericRuns(text)) {
    if (found.length >= max) break
    let tokens = runs.get(run)
    if (!tokens) runs.set(copyOf(run), tokens = wordsOf(run, Infinity).map(tokenOf))
    for (const token of tokens) found.push(token)
  }
  if (found.length > max) found.length = max
  return found
}

/** Cache of the words of short texts that many tools share, such as descriptions of parameters. */
const texts = new Map<string, readonly WordToken[]>()

/** Returns the words of several texts, from the cache. @param max max number of words */
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

/** Copies a word: a slice of a long text would keep the whole text in memory. */
const copyOf = (text: string): string => text.length < 13 ? text : ` ${text}`.slice(1)

/** Empties the caches if they are full. This renumbers terms; it must not be called while terms are being counted. */
export function clearFullWordCache (): void {
  if (Math.max(tokens.size, runs.size) < extensionsLimits.wordSearch.cachedWords) return
  tokens.clear()
  runs.clear()
  texts.clear()
  numbers.clear()
}

export const stemOf = (word: string): string => tokenOf(word).term
