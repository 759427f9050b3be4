import { parseJsonObject } from '../../../protocol/json.ts'
import { ownCredentialPrefixes } from '../../../schemas/credential-prefixes.ts'
import type { BearerKey } from '../../../schemas/settings.ts'
import { maskToken, sha256 } from './hash.ts'
import { mask } from './mask.ts'
import { maskFoundSecrets, type SecretRange } from './mask-decoded.ts'
import { SecretScanner } from './redact.ts'

const prefixes = Object.values(ownCredentialPrefixes).join('|')
const prefix = new RegExp(prefixes, 'i')
/** Matches a credential of this gateway, as a whole word or a long part of one; but not its mask (`thk_12ab...`). */
const prefixedCredential = new RegExp(
  `(?<![\\w-])(?:${prefixes})[\\w-]+(?![\\w-]|\\.\\.\\.)|(?:${prefixes})[\\w-]{20,}`, 'gi'
)

const jwt = /\beyJ[\w-]+\.[\w-]+\.[\w-]*/g

/** Masks credentials with one of the gateway's prefixes. */
const maskPrefixed = (text: string): string =>
  prefix.test(text) ? text.replace(prefixedCredential, (found) => `${found.slice(0, 4)}••••`) : text

/** Whether a word is a login token: a JWT whose issuer is `tool-hub`. */
function isLoginToken (word: string): boolean {
  const [, payload, signature, ...more] = word.split('.')
  if (payload === undefined || signature === undefined || more.length > 0) return false
  return parseJsonObject(Buffer.from(payload, 'base64url').toString())?.iss === 'tool-hub'
}

/** Whether a text contains a prefixed credential or a login token. */
const containsPrefixed = (text: string): boolean =>
  text.search(prefixedCredential) !== -1 || text.split(/[^\w.-]+/).some(isLoginToken)

/** Yields a header value as it is, percent-decoded, and each of its words decoded from base64 (as in `Basic`). */
function * decodings (value: string): Generator<string> {
  yield value
  if (value.includes('%')) {
    yield value.replace(/%[0-9a-f]{2}/gi, (code) => String.fromCharCode(Number.parseInt(code.slice(1), 16)))
  }
  for (const [word] of value.matchAll(/[\w+/-]{8,}={0,2}/g)) yield Buffer.from(word, 'base64').toString('latin1')
}

/** Whether a header value contains a prefixed credential or a login token, even percent-encoded or in base64. */
export const containsCredential = (value: string): boolean => [...decodings(value)].some(containsPrefixed)

/** The number of characters that `maskToken` shows at the start and the end of a token. */
const [shownFirst, shownLast] = [8, 4]
/** Max length of an imported key, in characters. METRICS_TOKEN may be longer. */
const maxKey = 512

type KnownKey = Pick<BearerKey, 'token' | 'tokenHash' | 'tokenMask'>

/**
 * Finds keys without a known prefix in texts: keys imported from other gateways, and METRICS_TOKEN. The first and last
 * characters of a key, which its mask shows, lead to candidates; the hash of the key confirms them.
 */
class ImportedKeys {
  readonly #byBeginning = new Map<string, Array<{ readonly last: string, readonly hash: string }>>()
  /** The hashes of keys whose mask shows no characters. */
  readonly #wholeKeyHashes = new Set<string>()
  #longest = maxKey
  readonly #scanner: SecretScanner

  constructor (keys: Iterable<KnownKey>) {
    for (const { token, tokenHash, tokenMask = '' } of keys) {
      this.#longest = Math.max(this.#longest, token?.length ?? 0)
      const mask = token === undefined ? tokenMask : maskToken(token)
      const hash = tokenHash ?? (token === undefined ? undefined : sha256(token))
      if (hash === undefined || mask.startsWith(ownCredentialPrefixes.key)) continue
      const [first, last] = [mask.slice(0, shownFirst), mask.slice(-shownLast)]
      if (mask.length !== shownFirst + 3 + shownLast) this.#wholeKeyHashes.add(hash)
      else this.#byBeginning.set(first, [...this.#byBeginning.get(first) ?? [], { last, hash }])
    }
    this.#scanner = new SecretScanner(this.#byBeginning.keys())
  }

  /** Finds the ranges of keys in a text. */
  * search (text: string): Generator<SecretRange> {
    if (this.#byBeginning.size > 0) {
      for (const range of this.#scanner.search(text)) {
        for (let start = range.start; start + shownFirst <= range.end; start++) {
          const end = this.#endAt(text, start)
          if (end !== undefined) yield { start, end, shown: '••••' }
        }
      }
    }
    if (this.#wholeKeyHashes.size === 0) return
    for (const { 0: word, index } of text.matchAll(/[^\s,;"'()<>]+/g)) {
      // The word may be `name=key`; a key itself may contain separators.
      for (const { 0: part, index: at } of [{ 0: word, index: 0 }, ...word.matchAll(/[^=:&?/@]+/g)]) {
        const start = index + at
        if (part.length <= this.#longest && this.#wholeKeyHashes.has(sha256(part))) {
          yield { start, end: start + part.length, shown: '••••' }
        }
      }
    }
  }

  /** Returns the end of the key that starts at `start`; undefined if no key starts there. */
  #endAt (text: string, start: number): number | undefined {
    for (const { last, hash } of this.#byBeginning.get(text.slice(start, start + shownFirst)) ?? []) {
      const limit = start + this.#longest
      for (let at = text.indexOf(last, start + shownFirst); at !== -1 && at < limit; at = text.indexOf(last, at + 1)) {
        if (sha256(text.slice(start, at + last.length)) === hash) return at + last.length
      }
    }
    return undefined
  }
}

/**
 * Recognizes the gateway's own credentials: its keys and tokens by prefix or issuer, imported keys and METRICS_TOKEN by
 * hash. These credentials must not be forwarded to servers or recorded, and are masked in logs.
 */
export class OwnCredentials {
  readonly #fixedKeys: readonly KnownKey[]
  #keys: () => ReadonlyMap<string, BearerKey> = () => new Map()
  /** The keys from which `#imported` was built. */
  #indexedKeys: ReadonlyMap<string, BearerKey> | undefined
  #imported: ImportedKeys | undefined

  constructor (metricsToken?: string) {
    this.#fixedKeys = metricsToken === undefined ? [] : [{ token: metricsToken }]
  }

  /** Sets the source of the bearer keys. @param keys returns the current keys: the same Map until a key changes */
  setKeySource (keys: () => ReadonlyMap<string, BearerKey>): void { this.#keys = keys }

  /** Whether a header value contains one of the credentials, even percent-encoded or in base64. */
  hasMatchIn (value: string): boolean {
    return containsCredential(value) || [...decodings(value)].some((decoded) =>
      this.#search(decoded).next().done !== true)
  }

  /** Masks the credentials in a text, including those with JSON escapes or percent-encoding. */
  mask (text: string): string {
    return maskFoundSecrets(text, (decoded) => this.#find(decoded))
  }

  * #find (text: string): Generator<SecretRange> {
    if (prefix.test(text)) {
      for (const { 0: word, index } of text.matchAll(prefixedCredential)) {
        yield { start: index, end: index + word.length, shown: `${word.slice(0, 4)}••••` }
      }
    }
    if (text.includes('eyJ')) {
      for (const { 0: word, index } of text.matchAll(jwt)) {
        if (isLoginToken(word)) yield { start: index, end: index + word.length, shown: '••••' }
      }
    }
    yield * this.#search(text)
  }

  #search (text: string): Generator<SecretRange> {
    const keys = this.#keys()
    if (this.#imported === undefined || keys !== this.#indexedKeys) {
      this.#indexedKeys = keys
      this.#imported = new ImportedKeys([...this.#fixedKeys, ...keys.values()])
    }
    return this.#imported.search(text)
  }
}

/** Credentials recognized by their form: JWTs, Authorization values, userinfo in URLs, secrets in queries. */
const patterns: ReadonlyArray<readonly [RegExp, string | ((...found: string[]) => string)]> = [
  [/\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*/g, '••••'],
  [/\b(bearer|basic)\s+([\w.~+/=-]{8,})/gi, (_, scheme = '', secret = '') => `${scheme} ${mask(secret)}`],
  [/(:\/\/)[^\s/?#@"']+@/g, '$1••••@'],
  [/([?&](?:[\w-]*token|code|state|[\w-]*key|password|[\w-]*secret)=)[^&\s"']+/gi, '$1••••']
]

/** A quick check: matches every text that one of the patterns can match, but also others, such as texts with a URL. */
const mayMatch = /eyJ|bearer|basic|:\/\/|[?&]/i

/**
 * JSON escapes of visible ASCII characters that JSON does not require. Escaped backslashes match, too, so that the text
 * after one is not taken for an escape.
 */
const needlessEscape = /\\(?:(\\)|\/|u00([2-7][\da-f]))/gi
const decodeEscape = (escape: string, backslash: string | undefined, code: string | undefined): string => {
  if (backslash !== undefined) return escape
  const character = code === undefined ? '/' : String.fromCharCode(Number.parseInt(code, 16))
  return '"\\\u007f'.includes(character) ? escape : character
}

/**
 * Masks all parts of a text that look like a credential. The text may be JSON: if a part is masked, needless escapes in
 * the whole text are decoded.
 */
export function maskLikelyCredentials (text: string): string {
  const decoded = text.includes('\\') ? text.replace(needlessEscape, decodeEscape) : text
  let masked = maskPrefixed(decoded)
  if (mayMatch.test(masked)) {
    masked = patterns.reduce((before, [pattern, shown]) => before.replace(pattern, shown as string), masked)
  }
  return masked === decoded ? text : masked
}
