import { skipSpace, skipString, skipValue } from '../../../../protocol/json.ts'
import type { Guard } from '../../../../schemas/guards.ts'
import { maskDecoded, type SecretRange } from '../../../base/secrets/index.ts'
import { findCards, isCard } from './card.ts'
import { findEmails } from './email.ts'
import { findIbans } from './iban.ts'
import { findPhones } from './phone.ts'
import type { Find } from './range.ts'
import { findSecrets } from './secrets.ts'

export type Kind = NonNullable<Guard['detect']>[number]

/** A text without what was found in it, and the kinds of that. */
export interface Masked { readonly text: string, readonly found: readonly Kind[] }

/** By kind; of two at one place, the earlier in this order is the one that is named. */
const finders: ReadonlyArray<readonly [Kind, Find]> = [
  ['secrets', findSecrets], ['email', findEmails], ['card', findCards], ['iban', findIbans], ['phone', findPhones]
]
const marks: Readonly<Record<Kind, string>> =
  { secrets: '[secret]', email: '[email]', card: '[card]', iban: '[iban]', phone: '[phone]' }

/** Masks the given kinds of content in JSON, which stays JSON of the same shape. */
export function maskJson (json: string, kinds: readonly Kind[]): Masked {
  const masker = new Masker(kinds)
  return { text: masker.json(json), found: [...masker.found] }
}

/** As `maskJson`, for a plain text. */
export function maskText (text: string, kinds: readonly Kind[]): Masked {
  const masker = new Masker(kinds)
  return { text: masker.plain(text), found: [...masker.found] }
}

const QUOTE = 0x22
const MINUS = 0x2d
const COLON = 0x3a
const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39
/** Base64 of at least this length is not read as text, in which it would match by chance. */
const minBinary = 256

class Masker {
  readonly found = new Set<Kind>()
  readonly #finders: typeof finders
  #keyCount = 0

  constructor (kinds: readonly Kind[]) {
    this.#finders = finders.filter(([kind]) => kinds.includes(kind))
  }

  /** Masks a text as it is written, and its decodings (JSON within a string, percent-encoding). */
  plain (text: string): string {
    return maskDecoded(text, (reading) => this.#rangesIn(reading))
  }

  /** Masks the strings and keys of JSON, and numbers that are cards. Everything else keeps its bytes. */
  json (json: string): string {
    const parts: string[] = []
    let from = 0
    let key = ''
    const replace = (start: number, end: number, value: string): void => {
      parts.push(json.slice(from, start), value)
      from = end
    }
    for (let at = 0; at < json.length;) {
      const code = json.charCodeAt(at)
      if (code === QUOTE) {
        const end = skipString(json, at)
        const text = JSON.parse(json.slice(at, end)) as string
        const isKey = json.charCodeAt(skipSpace(json, end)) === COLON
        const masked = isKey ? this.#key(text) : this.#string(text, key)
        if (masked !== text) replace(at, end, JSON.stringify(masked))
        if (isKey) key = text
        at = end
      } else if (code === MINUS || isDigit(code)) {
        const end = skipValue(json, at)
        // A value of the same type, which still fits its schema.
        if (this.#isCardNumber(json.slice(at, end))) replace(at, end, '0')
        at = end
      } else at++
    }
    return from === 0 ? json : parts.join('') + json.slice(from)
  }

  /** A key without what was found; different keys stay different. */
  #key (text: string): string {
    const masked = this.plain(text)
    if (masked === text) return text
    return this.#keyCount++ === 0 ? masked : `${masked} ${this.#keyCount}`
  }

  /** @param key the member that holds the string, or an array with it */
  #string (text: string, key: string): string {
    if (key !== 'blob' && key !== 'data') return this.plain(text)
    const encoding = /^[A-Za-z0-9+/]+={0,2}$/.test(text)
      ? 'base64'
      : /^[\w-]+={0,2}$/.test(text) ? 'base64url' : undefined
    if (encoding === undefined) return this.plain(text)
    const content = textOf(Buffer.from(text, encoding))
    const masked = content === undefined ? undefined : this.plain(content)
    if (masked !== content) return Buffer.from(masked ?? '').toString(encoding)
    return text.length < minBinary ? this.plain(text) : text
  }

  #isCardNumber (text: string): boolean {
    if (!this.#finders.some(([kind]) => kind === 'card')) return false
    const digits = /^\d+$/.test(text) ? text : String(Number(text))
    if (!isCard(digits)) return false
    this.found.add('card')
    return true
  }

  #rangesIn (text: string): SecretRange[] {
    const ranges: SecretRange[] = []
    for (const [kind, find] of this.#finders) {
      for (const { start, end } of find(text)) {
        // What begins within an escape is found in the decoding of the text.
        if (isWithinEscape(text, start)) continue
        ranges.push({ start, end, shown: marks[kind] })
        this.found.add(kind)
      }
    }
    return ranges
  }
}

/** Bytes as text; undefined if they are none. */
function textOf (bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

const escape = /\\(?:u[\da-fA-F]{4}|["\\/bfnrt])|%[\da-fA-F]{2}/y
const longestEscape = 6

/** Whether a place is in the middle of an escape of JSON or of a URL. */
function isWithinEscape (text: string, place: number): boolean {
  for (let at = Math.max(0, place - longestEscape + 1); at < place; at++) {
    escape.lastIndex = at
    if (!escape.test(text) || escape.lastIndex <= place) continue
    // A backslash that is itself escaped begins nothing.
    let first = at
    while (text.charAt(first - 1) === '\\') first--
    if ((at - first) % 2 === 0) return true
  }
  return false
}
