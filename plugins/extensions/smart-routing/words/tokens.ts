// Splits texts into words: identifiers are split, accents removed, and scripts without spaces split into pairs of
// characters.

/** Max length of a word, in characters; longer words are truncated. */
const maxWordLength = 48
const run = /[\p{L}\p{N}\p{M}]+/gu
const noWord = /[^A-Za-z0-9]+/
const lowerCase = /^[a-z]+$/
const capitalized = /^[A-Z](?:[a-z]+|[A-Z]*)$/
const plainAscii = /^[\t-\r -~]*$/
/** Matches texts whose letters and digits are all ASCII; these take a faster path. Unicode punctuation is allowed. */
const asciiWords =
  /^[\t-\r -~\u00a0\u00ab\u00b7\u00bb\u2010-\u2016\u2018-\u203d\u203f-\u205e\u2190-\u21ff\u2500-\u2775]*$/
/** Scripts without spaces between words, and Hangul, whose words have endings without spaces. */
const scripts = [
  'Han', 'Hiragana', 'Katakana', 'Hangul', 'Thai', 'Lao', 'Khmer', 'Myanmar'
].map((script) => `\\p{Script=${script}}`).join('')
const withoutSpaces = new RegExp(`[${scripts}ー]`, 'u')
const pieces = new RegExp(`([${scripts}ー]+)`, 'u')
const unspacedRun = new RegExp(`[${scripts}ー]+(?: [\\p{Script=Han}\\p{Script=Hangul}]+)*`, 'gu')
const letterReplacements: Record<string, string> = { ß: 'ss', ł: 'l', ø: 'o', æ: 'ae', œ: 'oe', ı: 'i', đ: 'd' }

/** Converts a word to lower case without accents. */
export function foldCaseAndAccents (word: string): string {
  const lower = word.toLowerCase()
  if (plainAscii.test(lower)) return lower
  return lower.normalize('NFD').replace(/[\u0300-\u036f]/g, '').normalize('NFC').replace(/[ßłøæœıđ]/g, (letter) =>
    letterReplacements[letter] ?? letter)
}

/**
 * Returns the words of a text, in order: `GitHub` becomes git, hub, github; `create_issue` becomes create, issue;
 * `oauth2` becomes oauth2, oauth.
 * @param max max number of words
 * @param isWhole whether a split identifier is also returned as a whole: true for an index, false for a query, where
 *   adjacent words matter
 */
export function wordsOf (text: string, max: number, isWhole = true): string[] {
  const words: string[] = []
  for (const run of alphanumericRuns(text)) {
    if (words.length >= max) break
    addRun(words, run, isWhole)
  }
  if (words.length > max) words.length = max
  return words
}

/**
 * Returns the runs of letters and digits of a text, each truncated to `maxWordLength`; some may be empty. `wordsOf`
 * splits the runs into words.
 */
export function alphanumericRuns (text: string): readonly string[] {
  const runs = asciiWords.test(text) ? text.split(noWord) : text.normalize('NFKC').match(run) ?? []
  for (let i = 0; i < runs.length; i++) {
    const found = runs[i] ?? ''
    if (found.length > maxWordLength) runs[i] = found.slice(0, maxWordLength)
  }
  return runs
}

function addRun (words: string[], run: string, isWhole: boolean): void {
  if (!withoutSpaces.test(run)) {
    if (run !== '') addIdentifier(words, run, isWhole)
    return
  }
  for (const piece of run.split(pieces)) {
    if (withoutSpaces.test(piece)) words.push(...pairs(piece))
    else if (piece !== '') addIdentifier(words, piece, isWhole)
  }
}

function addIdentifier (words: string[], identifier: string, isWhole: boolean): void {
  if (lowerCase.test(identifier)) {
    words.push(identifier)
    return
  }
  if (capitalized.test(identifier)) {
    words.push(identifier.toLowerCase())
    return
  }
  const parts = identifier.split(/(?<=\p{Ll})(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll}{2})/u)
  if (parts.length > 1) for (const part of parts) addPart(words, part)
  if (parts.length === 1 || isWhole) addPart(words, identifier)
}

function addPart (words: string[], part: string): void {
  const word = foldCaseAndAccents(part)
  words.push(word)
  if (!/\p{N}/u.test(word)) return
  for (const letters of word.match(/\p{L}{3,}/gu) ?? []) words.push(letters)
}

/** Returns the pairs of adjacent characters: 搜索文件 becomes 搜索, 索文, 文件. A single character is returned as it is. */
function pairs (text: string): string[] {
  const characters = [...text]
  if (characters.length < 2) return characters
  return characters.slice(1).map((character, i) => `${characters[i] ?? ''}${character}`)
}

/** Returns the runs of characters in scripts without spaces, or Hangul. A run may contain single spaces (Korean). */
export function unspacedScriptRuns (text: string): string[] {
  return text.normalize('NFKC').match(unspacedRun) ?? []
}

/** Whether a word contains characters of a script without spaces, or Hangul. */
export const hasUnspacedScript = (word: string): boolean => withoutSpaces.test(word)
