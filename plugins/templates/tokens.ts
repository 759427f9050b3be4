import { isAddress, type Cover } from '../secrets/mask.ts'

/** A segment of a path that may be a token: words of letters, dots and hyphens are not. As `isPlainAddress` of the vault has it. */
const isTokenSegment = (segment: string): boolean => segment.length >= 16 && !/^[a-z.-]+$/i.test(segment) && !segment.includes('${')

/** Words that begin as the tokens of well-known services do. */
const known = /^(?:sk|pk|rk|ghp|gho|ghu|ghs|github_pat|glpat|xox[abprs]|akia|thk|npm|hf|eyj)[-_]?[\w.+/=-]{12,}$/i

/** Whether a word, without anything beside it that says so, looks like a token: long, with letters and digits, and no path or file name. */
const isTokenWord = (word: string): boolean =>
  known.test(word) ||
  (/^[\w+=~-]{20,}$/.test(word) && /\d/.test(word) && /[a-z]/i.test(word))

/** An address without tokens in its path. Addresses that go on beyond a host are recognized wherever they stand. */
function coverPath (address: string, cover: Cover): string {
  const [, origin = '', path = '', rest = ''] = /^([a-z][a-z0-9+.-]*:\/\/[^/?#]*)([^?#]*)(.*)$/is.exec(address) ?? []
  if (origin === '') return address
  return `${origin}${path.split('/').map((segment) => isTokenSegment(segment) ? cover(segment, 'path') : segment).join('/')}${rest}`
}

/** A text of a config whose named secrets are covered already, without what else looks like a token. */
export function coverText (text: string, cover: Cover): string {
  if (isAddress(text)) return coverPath(text, cover)
  return text.split(/([\s;,='"]+)/).map((word) => {
    if (isAddress(word)) return coverPath(word, cover)
    return isTokenWord(word) ? cover(word, 'token') : word
  }).join('')
}
