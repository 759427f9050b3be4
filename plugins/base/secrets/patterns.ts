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

/** Masks in a text what looks like a credential. */
export function maskPatterns (text: string): string {
  const masked = maskFamily(text)
  return mayMatch.test(masked) ? patterns.reduce((before, [pattern, shown]) => before.replace(pattern, shown as string), masked) : masked
}
