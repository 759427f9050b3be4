import { mask } from './mask.ts'

/** Credentials that are known by how they look: our keys, JWTs, values of Authorization, users in URLs, secrets in queries. */
const patterns: ReadonlyArray<readonly [RegExp, string | ((...found: string[]) => string)]> = [
  [/(?<![\w-])thk_[\w-]+/gi, 'thk_••••'],
  [/\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*/g, '••••'],
  [/\b(bearer|basic)\s+([\w.~+/=-]{8,})/gi, (_, scheme = '', secret = '') => `${scheme} ${mask(secret)}`],
  [/(:\/\/)[^\s/?#@"']+@/g, '$1••••@'],
  [/([?&](?:[\w-]*token|code|state|[\w-]*key|password|[\w-]*secret)=)[^&\s"']+/gi, '$1••••']
]

/** A text that does not match this contains none of the patterns; checking it first is faster for most texts. */
const mayMatch = /thk_|eyJ|bearer|basic|:\/\/|[?&]/i

/** Masks in a text what looks like a credential. */
export const maskPatterns = (text: string): string => !mayMatch.test(text)
  ? text
  : patterns.reduce((masked, [pattern, shown]) => masked.replace(pattern, shown as string), text)
