/** Returns the text to show instead of a secret. `hint`: the name of its member, header, option or parameter. */
export type MaskSecret = (secret: string, hint: string) => string

/** Whether a text starts like an absolute URL. The length of the scheme is bounded, to keep the cost low. */
export const isAbsoluteUrl = (text: string): boolean => /^[a-z][a-z0-9+.-]{0,255}:\/\//i.test(text)

/** Matches tokens of well-known services, by prefixes that no ordinary word has. */
const knownToken = new RegExp(
  '^(?:gh[opsur]_\\w{12}|github_pat_\\w{12}|glpat-[\\w-]{12}|xox[a-z]-[\\w-]{12}|th[klrt]_\\w{12}|' +
  'npm_[a-z0-9]{24}|hf_[a-z0-9]{24}|' +
  'akia[a-z0-9]{12}|aiza[\\w-]{24}|eyj[\\w-]{12})[\\w.+/=-]*$',
  'i'
)

/** Whether a word is a key `sk-…`, `pk_…` or `rk_…`, rather than an ordinary name such as `sk-learn-server`. */
const isServiceKey = (word: string): boolean => /^(?:sk|pk|rk)[-_][\w-]+$/i.test(word) && /[a-z0-9]{16}/i.test(word)

const uuid = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i

/**
 * The average length of the words in a text; for example, `getUser2` consists of `get`, `User`, `2`. About 2 for random
 * text.
 */
function wordLength (text: string): number {
  const words = text.match(/[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+/g) ?? []
  return words.length === 0 ? 0 : words.reduce((sum, { length }) => sum + length, 0) / words.length
}

/** Whether a run of letters and digits is random: many digits, inner capitals, or unpronounceable letters. */
function isRandomRun (run: string): boolean {
  if ((run.match(/\d/g) ?? []).length >= 4) return true
  if (run.length >= 16 && wordLength(run) < 2.6) return true
  const vowels = (run.match(/[aeiouy]/gi) ?? []).length
  return run.length >= 20 && (vowels < run.length / 4 || /[b-df-hj-np-tv-xz]{7}/i.test(run))
}

/** Whether a text of 16 characters or more is random, rather than words, names and versions. */
function isRandom (text: string): boolean {
  if (uuid.test(text)) return true
  if ((text.match(/[a-z0-9]{10,}/gi) ?? []).some(isRandomRun)) return true
  // Groups of capitals and digits, such as licence keys.
  return /[A-Z]/.test(text) && /\d/.test(text) && wordLength(text) < 2.6
}

const isTokenSegment = (segment: string): boolean =>
  segment.length >= 16 && !segment.includes('${') &&
    (knownToken.test(segment) || isServiceKey(segment) || isRandom(segment))

/** Whether a word is a token, whatever its context is. Paths and file names are not tokens. */
const isTokenWord = (word: string): boolean =>
  knownToken.test(word) || isServiceKey(word) || (/^[\w+=~-]{20,}$/.test(word) && isRandom(word))

/** Masks the tokens in the path of a URL. */
function maskPath (address: string, maskSecret: MaskSecret): string {
  const [, origin = '', path = '', rest = ''] = /^([a-z][a-z0-9+.-]*:\/\/[^/?#]*)([^?#]*)(.*)$/is.exec(address) ?? []
  if (origin === '') return address
  const segments = path.split('/').map((segment) => isTokenSegment(segment) ? maskSecret(segment, 'path') : segment)
  return `${origin}${segments.join('/')}${rest}`
}

/** Masks words and path segments of URLs that look like tokens. Secrets with a name must have been masked before. */
export function maskTokens (text: string, maskSecret: MaskSecret): string {
  if (isAbsoluteUrl(text)) return maskPath(text, maskSecret)
  return text.split(/([\s;,='"]+)/).map((word) => {
    if (isAbsoluteUrl(word)) return maskPath(word, maskSecret)
    return isTokenWord(word) ? maskSecret(word, 'token') : word
  }).join('')
}
