import { credentialPrefixes } from '../../../schemas/credential-prefixes.ts'
import type { BearerKey } from '../../../schemas/settings.ts'
import { maskToken, sha256 } from './hash.ts'
import { mask } from './mask.ts'
import { maskReadings, type Secret } from './readings.ts'
import { SecretScanner } from './redact.ts'

const prefixes = Object.values(credentialPrefixes).join('|')
const prefix = new RegExp(prefixes, 'i')
/**
 * A credential of this gateway: at the start of a word, or a long one within a word. A mask (`thk_12ab...`) is none.
 */
const family = new RegExp(`(?<![\\w-])(?:${prefixes})[\\w-]+(?![\\w-]|\\.\\.\\.)|(?:${prefixes})[\\w-]{20,}`, 'gi')

const jwt = /\beyJ[\w-]+\.[\w-]+\.[\w-]*/g

/** Masks what begins as credentials of this gateway do. */
const maskFamily = (text: string): string =>
  prefix.test(text) ? text.replace(family, (found) => `${found.slice(0, 4)}••••`) : text

/** Whether a word is a login token: a JWT that this gateway has issued. */
function isLoginToken (word: string): boolean {
  const [, payload, signature, ...more] = word.split('.')
  if (payload === undefined || signature === undefined || more.length > 0) return false
  try {
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as { iss?: unknown } | null
    return claims?.iss === 'tool-hub'
  } catch {
    return false
  }
}

/** Whether a text holds a credential with a known prefix, or a login token. */
const holdsFamily = (text: string): boolean => text.search(family) !== -1 || text.split(/[^\w.-]+/).some(isLoginToken)

/** A value, and its readings in the encodings of headers: percent-encoding, and base64, as in `Basic`. */
function * readings (value: string): Generator<string> {
  yield value
  if (value.includes('%')) {
    yield value.replace(/%[0-9a-f]{2}/gi, (code) => String.fromCharCode(Number.parseInt(code.slice(1), 16)))
  }
  for (const [word] of value.matchAll(/[\w+/-]{8,}={0,2}/g)) yield Buffer.from(word, 'base64').toString('latin1')
}

/** Whether the value of a header holds a credential with a known prefix, in any encoding. */
export const holdsCredential = (value: string): boolean => [...readings(value)].some(holdsFamily)

/** How many characters a mask shows of the start and of the end of a token (`maskToken`). */
const [shownFirst, shownLast] = [8, 4]
/** Max length of an imported key, in characters. METRICS_TOKEN may be longer. */
const maxKey = 512

type KnownKey = Pick<BearerKey, 'token' | 'tokenHash' | 'tokenMask'>

/**
 * Keys imported from other gateways, and METRICS_TOKEN, without a known prefix. Their mask tells how they begin and
 * end, their hash identifies them.
 */
class ImportedKeys {
  readonly #byBeginning = new Map<string, Array<{ readonly last: string, readonly hash: string }>>()
  /** The hashes of keys whose mask tells nothing. */
  readonly #words = new Set<string>()
  #longest = maxKey
  readonly #scanner: SecretScanner

  constructor (keys: Iterable<KnownKey>) {
    for (const { token, tokenHash, tokenMask = '' } of keys) {
      this.#longest = Math.max(this.#longest, token?.length ?? 0)
      const mask = token === undefined ? tokenMask : maskToken(token)
      const hash = tokenHash ?? (token === undefined ? undefined : sha256(token))
      if (hash === undefined || mask.startsWith(credentialPrefixes.key)) continue
      const [first, last] = [mask.slice(0, shownFirst), mask.slice(-shownLast)]
      if (mask.length !== shownFirst + 3 + shownLast) this.#words.add(hash)
      else this.#byBeginning.set(first, [...this.#byBeginning.get(first) ?? [], { last, hash }])
    }
    this.#scanner = new SecretScanner(this.#byBeginning.keys())
  }

  /** The places of keys in a text. */
  * search (text: string): Generator<Secret> {
    if (this.#byBeginning.size > 0) {
      for (const range of this.#scanner.search(text)) {
        for (let start = range.start; start + shownFirst <= range.end; start++) {
          const end = this.#endAt(text, start)
          if (end !== undefined) yield { start, end, shown: '••••' }
        }
      }
    }
    if (this.#words.size === 0) return
    for (const { 0: word, index } of text.matchAll(/[^\s,;"'()<>]+/g)) {
      // A key may follow a name, and may itself contain a separator.
      for (const { 0: part, index: at } of [{ 0: word, index: 0 }, ...word.matchAll(/[^=:&?/@]+/g)]) {
        const start = index + at
        if (part.length <= this.#longest && this.#words.has(sha256(part))) {
          yield { start, end: start + part.length, shown: '••••' }
        }
      }
    }
  }

  /** The end of a key that begins here; undefined: none does. */
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
 * Recognises the gateway's own credentials, which are never forwarded to a server, never recorded, and masked in logs:
 * by their prefix, and imported keys and METRICS_TOKEN by their hash.
 */
export class OwnCredentials {
  readonly #fixed: readonly KnownKey[]
  #keys: () => ReadonlyMap<string, BearerKey> = () => new Map()
  /** The keys that `#imported` was made from. */
  #indexed: ReadonlyMap<string, BearerKey> | undefined
  #imported: ImportedKeys | undefined

  /** @param metricsToken METRICS_TOKEN */
  constructor (metricsToken?: string) {
    this.#fixed = metricsToken === undefined ? [] : [{ token: metricsToken }]
  }

  /** @param keys the current bearer keys; the same object as long as none has changed */
  watch (keys: () => ReadonlyMap<string, BearerKey>): void { this.#keys = keys }

  /** Whether the value of a header holds one, at any place and in any encoding. */
  holds (value: string): boolean {
    return holdsCredential(value) || [...readings(value)].some((reading) => this.#search(reading).next().done !== true)
  }

  /** A text with them masked, also where they stand in JSON's escapes or percent-encoded. */
  mask (text: string): string {
    return maskReadings(text, (reading) => this.#find(reading))
  }

  * #find (text: string): Generator<Secret> {
    if (prefix.test(text)) {
      for (const { 0: word, index } of text.matchAll(family)) {
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

  #search (text: string): Generator<Secret> {
    const keys = this.#keys()
    if (this.#imported === undefined || keys !== this.#indexed) {
      this.#indexed = keys
      this.#imported = new ImportedKeys([...this.#fixed, ...keys.values()])
    }
    return this.#imported.search(text)
  }
}

/** Credentials that are known by how they look: JWTs, values of Authorization, users in URLs, secrets in queries. */
const patterns: ReadonlyArray<readonly [RegExp, string | ((...found: string[]) => string)]> = [
  [/\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*/g, '••••'],
  [/\b(bearer|basic)\s+([\w.~+/=-]{8,})/gi, (_, scheme = '', secret = '') => `${scheme} ${mask(secret)}`],
  [/(:\/\/)[^\s/?#@"']+@/g, '$1••••@'],
  [/([?&](?:[\w-]*token|code|state|[\w-]*key|password|[\w-]*secret)=)[^&\s"']+/gi, '$1••••']
]

/** Matches every text that contains one of the patterns; most texts do not match. */
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
  if (mayMatch.test(masked)) {
    masked = patterns.reduce((before, [pattern, shown]) => before.replace(pattern, shown as string), masked)
  }
  return masked === read ? text : masked
}
