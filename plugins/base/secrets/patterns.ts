import { mask } from './mask.ts'
import { maskFamily } from './own-credentials.ts'

/** Credentials that are known by how they look: JWTs, values of Authorization, users in URLs, secrets in queries. */
const patterns: ReadonlyArray<readonly [RegExp, string | ((...found: string[]) => string)]> = [
  [/\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*/g, '••••'],
  [/\b(bearer|basic)\s+([\w.~+/=-]{8,})/gi, (_, scheme = '', secret = '') => `${scheme} ${mask(secret)}`],
  [/(:\/\/)[^\s/?#@"']+@/g, '$1••••@'],
  [/([?&](?:[\w-]*token|code|state|[\w-]*key|password|[\w-]*secret)=)[^&\s"']+/gi, '$1••••']
]

/** A text that does not match this contains none of the patterns; checking it first is faster for most texts. */
const mayMatch = /eyJ|bearer|basic|:\/\/|[?&]/i

/** Escapes of JSON that stand for visible ASCII, beside those that are needed; an escaped backslash is none. */
const needless = /\\(?:(\\)|\/|u00([2-7][\da-f]))/gi
const plain = (escape: string, backslash: string | undefined, code: string | undefined): string => {
  if (backslash !== undefined) return escape
  const character = code === undefined ? '/' : String.fromCharCode(Number.parseInt(code, 16))
  return '"\\\u007f'.includes(character) ? escape : character
}

/** Masks in a text, which may be JSON, what looks like a credential. */
export function maskPatterns (text: string): string {
  const read = text.includes('\\') ? text.replace(needless, plain) : text
  let masked = maskFamily(read)
  if (mayMatch.test(masked)) masked = patterns.reduce((before, [pattern, shown]) => before.replace(pattern, shown as string), masked)
  return masked === read ? text : masked
}
