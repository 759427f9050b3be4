import { credentialPrefixes } from '../../../schemas/credential-prefixes.ts'
import type { BearerKey } from '../../../schemas/settings.ts'
import { maskToken, sha256 } from './hash.ts'
import { mask } from './mask.ts'
import { SecretScanner } from './redact.ts'

const prefixes = Object.values(credentialPrefixes).join('|')
const prefix = new RegExp(prefixes, 'i')
/** A credential of this gateway: at the start of a word, or a long one within a word. A mask (`thk_12ab...`) is none. */
const family = new RegExp(`(?<![\\w-])(?:${prefixes})[\\w-]+(?![\\w-]|\\.\\.\\.)|(?:${prefixes})[\\w-]{20,}`, 'gi')

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
  if (value.includes('%')) yield value.replace(/%[0-9a-f]{2}/gi, (code) => String.fromCharCode(Number.parseInt(code.slice(1), 16)))
  for (const [word] of value.matchAll(/[\w+/-]{8,}={0,2}/g)) yield Buffer.from(word, 'base64').toString('latin1')
}

/** Whether the value of a header holds a credential with a known prefix, in any encoding. */
export const holdsCredential = (value: string): boolean => [...readings(value)].some(holdsFamily)

/** A range of a text. */
interface Found { readonly start: number, readonly end: number }

/** How many characters a mask shows of the start and of the end of a token (`maskToken`). */
const [shownFirst, shownLast] = [8, 4]
/** Max length of an imported key, in characters. */
const maxKey = 512

/** Keys imported from other gateways, without a known prefix. Their mask tells how they begin and end, their hash identifies them. */
class ImportedKeys {
  readonly #byBeginning = new Map<string, Array<{ readonly last: string, readonly hash: string }>>()
  /** The hashes of keys whose mask tells nothing. */
  readonly #words = new Set<string>()
  readonly #scanner: SecretScanner

  constructor (keys: Iterable<BearerKey>) {
    for (const { token, tokenHash, tokenMask = '' } of keys) {
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
  * search (text: string): Generator<Found> {
    if (this.#byBeginning.size > 0) {
      for (const range of this.#scanner.search(text)) {
        for (let start = range.start; start + shownFirst <= range.end; start++) {
          const end = this.#endAt(text, start)
          if (end !== undefined) yield { start, end }
        }
      }
    }
    if (this.#words.size === 0) return
    for (const { 0: word, index } of text.matchAll(/[^\s,;"'()<>]+/g)) {
      // A key may follow a name, and may itself contain a separator.
      for (const { 0: part, index: at } of [{ 0: word, index: 0 }, ...word.matchAll(/[^=:&?/@]+/g)]) {
        if (part.length <= maxKey && this.#words.has(sha256(part))) yield { start: index + at, end: index + at + part.length }
      }
    }
  }

  /** The end of a key that begins here; undefined: none does. */
  #endAt (text: string, start: number): number | undefined {
    for (const { last, hash } of this.#byBeginning.get(text.slice(start, start + shownFirst)) ?? []) {
      const limit = start + maxKey
      for (let at = text.indexOf(last, start + shownFirst); at !== -1 && at < limit; at = text.indexOf(last, at + 1)) {
        if (sha256(text.slice(start, at + last.length)) === hash) return at + last.length
      }
    }
    return undefined
  }
}

/**
 * Recognises the gateway's own credentials, which are never forwarded to a server, never recorded, and masked in logs: by their prefix, and
 * imported keys by their hash.
 */
export class OwnCredentials {
  #keys: () => ReadonlyMap<string, BearerKey> = () => new Map()
  #tokens: readonly string[] = []
  /** The keys that `#imported` was made from. */
  #indexed: ReadonlyMap<string, BearerKey> | undefined
  #imported: ImportedKeys | undefined

  /**
   * @param keys the current bearer keys; the same object as long as none has changed
   * @param tokens credentials from the environment (METRICS_TOKEN)
   */
  watch (keys: () => ReadonlyMap<string, BearerKey>, tokens: readonly string[] = []): void {
    this.#keys = keys
    this.#tokens = tokens
  }

  /** Whether the value of a header holds one, at any place and in any encoding. */
  holds (value: string): boolean {
    return holdsCredential(value) || [...readings(value)].some((reading) => this.#search(reading).next().done !== true)
  }

  /** A text with them masked. */
  mask (text: string): string {
    const shown = maskFamily(text)
    const masked = shown.includes('eyJ') ? shown.replace(/\beyJ[\w-]+\.[\w-]+\.[\w-]*/g, (word) => isLoginToken(word) ? '••••' : word) : shown
    const parts: string[] = []
    let from = 0
    for (const { start, end } of [...this.#search(masked)].sort((one, other) => one.start - other.start)) {
      if (start < from) continue
      parts.push(masked.slice(from, start), '••••')
      from = end
    }
    return from === 0 ? masked : parts.join('') + masked.slice(from)
  }

  #search (text: string): Generator<Found> {
    const keys = this.#keys()
    if (this.#imported === undefined || keys !== this.#indexed) {
      this.#indexed = keys
      this.#imported = new ImportedKeys([...keys.values(), ...this.#tokens.map((token) => ({ id: '', name: '', token }))])
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

/** Masks in a text what looks like a credential. */
export function maskPatterns (text: string): string {
  const masked = maskFamily(text)
  return mayMatch.test(masked) ? patterns.reduce((before, [pattern, shown]) => before.replace(pattern, shown as string), masked) : masked
}
