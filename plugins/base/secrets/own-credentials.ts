import { credentialPrefixes } from '../../../schemas/credential-prefixes.ts'
import type { BearerKey } from '../../../schemas/settings.ts'
import { maskToken, sha256 } from './hash.ts'
import { maskReadings, type Secret } from './readings.ts'
import { SecretScanner } from './scan.ts'

const prefixes = Object.values(credentialPrefixes).join('|')
const prefix = new RegExp(prefixes, 'i')
/** A credential of this gateway's: at the beginning of a word, or as long as one within another word. A mask (`thk_12ab...`) is none. */
const family = new RegExp(`(?<![\\w-])(?:${prefixes})[\\w-]+(?![\\w-]|\\.\\.\\.)|(?:${prefixes})[\\w-]{20,}`, 'gi')

const jwt = /\beyJ[\w-]+\.[\w-]+\.[\w-]*/g

/** Masks in a text what begins as credentials of this gateway's do. */
export const maskFamily = (text: string): string =>
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

/** Whether a text holds a credential of this gateway's: one of the family, or a login token. */
const holdsFamily = (text: string): boolean => text.search(family) !== -1 || text.split(/[^\w.-]+/).some(isLoginToken)

/** A value as it came, and what it says in an encoding that headers use: percent-encoding, and base64, as of `Basic`. */
function * readings (value: string): Generator<string> {
  yield value
  if (value.includes('%')) yield value.replace(/%[0-9a-f]{2}/gi, (code) => String.fromCharCode(Number.parseInt(code.slice(1), 16)))
  for (const [word] of value.matchAll(/[\w+/-]{8,}={0,2}/g)) yield Buffer.from(word, 'base64').toString('latin1')
}

/** Whether the value of a header holds a credential that is known by how it begins, in whatever form. */
export const holdsCredential = (value: string): boolean => [...readings(value)].some(holdsFamily)

/** Length of what a mask shows of the beginning and of the end of a token (`maskToken`). */
const [shownFirst, shownLast] = [8, 4]
/** Max length of an imported key, in characters. METRICS_TOKEN may be longer. */
const longest = 512

type KnownKey = Pick<BearerKey, 'token' | 'tokenHash' | 'tokenMask'>

/**
 * Keys of other gateways, and METRICS_TOKEN, which have no prefix of ours: found by their hash, where a mask tells how they begin and end.
 */
class ImportedKeys {
  readonly #byBeginning = new Map<string, Array<{ readonly last: string, readonly hash: string }>>()
  /** Of those whose mask tells nothing. */
  readonly #words = new Set<string>()
  #longest = longest
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

  /** Where they stand in a text. */
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
      // A key may stand behind a name, and may hold what separates names itself.
      for (const { 0: part, index: at } of [{ 0: word, index: 0 }, ...word.matchAll(/[^=:&?/@]+/g)]) {
        const start = index + at
        if (part.length <= this.#longest && this.#words.has(sha256(part))) yield { start, end: start + part.length, shown: '••••' }
      }
    }
  }

  /** The end of a key that begins here; undefined: none does. */
  #endAt (text: string, start: number): number | undefined {
    for (const { last, hash } of this.#byBeginning.get(text.slice(start, start + shownFirst)) ?? []) {
      const most = start + this.#longest
      for (let at = text.indexOf(last, start + shownFirst); at !== -1 && at < most; at = text.indexOf(last, at + 1)) {
        if (sha256(text.slice(start, at + last.length)) === hash) return at + last.length
      }
    }
    return undefined
  }
}

/**
 * Recognises the gateway's own credentials: those of its family by their prefix, imported keys and METRICS_TOKEN by their hash. They are
 * never forwarded to a server, never recorded, and masked in logs.
 */
export class OwnCredentials {
  readonly #fixed: readonly KnownKey[]
  #keys: () => ReadonlyMap<string, BearerKey> = () => new Map()
  /** What `#imported` was made from. */
  #indexed: ReadonlyMap<string, BearerKey> | undefined
  #imported: ImportedKeys | undefined

  /** @param metricsToken METRICS_TOKEN */
  constructor (metricsToken?: string) {
    this.#fixed = metricsToken === undefined ? [] : [{ token: metricsToken }]
  }

  /** @param keys the bearer keys now; the same object as long as none has changed */
  watch (keys: () => ReadonlyMap<string, BearerKey>): void { this.#keys = keys }

  /** Whether the value of a header holds one, wherever in it and in whatever form. */
  holds (value: string): boolean {
    return holdsCredential(value) || [...readings(value)].some((reading) => this.#search(reading).next().done !== true)
  }

  /** A text without them, also where it has them in JSON's escapes or percent-encoded. */
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
