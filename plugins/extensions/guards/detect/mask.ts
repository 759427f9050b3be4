import { isUtf8 } from 'node:buffer'
import { membersOf, parseIfJson, skipSpace, skipString, skipValue } from '../../../../protocol/json.ts'
import type { Guard } from '../../../../schemas/guards.ts'
import { maskFoundSecrets, type SecretRange } from '../../../base/secrets/index.ts'
import { findCards, isCard } from './card.ts'
import { findEmails } from './email.ts'
import { findIbans } from './iban.ts'
import { findPhones } from './phone.ts'
import type { FindRanges } from './range.ts'
import { findSecrets } from './secrets.ts'

/** A kind of content that guards can detect. */
export type DetectedKind = NonNullable<Guard['detect']>[number]

/** A text with the found content masked, and the kinds of content found. */
export interface MaskedText { readonly text: string, readonly found: readonly DetectedKind[] }

/** The finder of each kind of content. Of two kinds found at the same place, the earlier one in this list is named. */
const finders: ReadonlyArray<readonly [DetectedKind, FindRanges]> = [
  ['secrets', findSecrets], ['email', findEmails], ['card', findCards], ['iban', findIbans], ['phone', findPhones]
]
const marks: Readonly<Record<DetectedKind, string>> =
  { secrets: '[secret]', email: '[email]', card: '[card]', iban: '[iban]', phone: '[phone]' }

/**
 * Masks the given kinds of content in JSON text. The result has the same structure; masked keys are renamed.
 * @param isResult whether the JSON is a result, in which media in base64 are not searched as text
 */
export function maskJson (json: string, kinds: readonly DetectedKind[], isResult = false): MaskedText {
  const masker = new Masker(kinds)
  return { text: masker.json(json, isResult), found: [...masker.found] }
}

/** Masks the given kinds of content in plain text. */
export function maskText (text: string, kinds: readonly DetectedKind[]): MaskedText {
  const masker = new Masker(kinds)
  return { text: masker.plain(text), found: [...masker.found] }
}

const QUOTE = 0x22
const MINUS = 0x2d
const COLON = 0x3a
const isOpening = (code: number): boolean => code === 0x7b || code === 0x5b
const isClosing = (code: number): boolean => code === 0x7d || code === 0x5d
const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39
/** Min length of media data that is not searched as text, in characters: long base64 would match by chance. */
const minMediaLength = 256
/** Matches the comma-separated keys that lead to a content item, in the result of a tool, resource, prompt or task. */
const contentItem = /^,(?:result,)?(?:content,content|contents,contents|messages,messages,content)(?:,resource)?$/
/** Min length of a text that is searched, in characters: the shortest content that can be found is like `a@b.cc`. */
const minContentLength = 6

/** Masks one text, and collects the kinds of content found in it. */
class Masker {
  readonly found = new Set<DetectedKind>()
  readonly #finders: typeof finders

  constructor (kinds: readonly DetectedKind[]) {
    this.#finders = finders.filter(([kind]) => kinds.includes(kind))
  }

  /** Masks content in a text, even if the content is escaped (JSON within a string, percent-encoding). */
  plain (text: string): string {
    if (text.length < minContentLength) return text
    const masked = maskFoundSecrets(text, (reading) => this.#rangesIn(reading))
    // Content may also begin right after characters that only look like an escape.
    return /[\\%]/.test(masked) ? maskFoundSecrets(masked, (reading) => this.#rangesBesideEscapes(reading)) : masked
  }

  /** Masks content in the strings, keys and numbers of a JSON text. All other characters are copied. */
  json (json: string, isResult: boolean): string {
    const parts: string[] = []
    let from = 0
    let key = ''
    /** The number of masked keys so far. It is appended to all of them but the first, so that they stay distinct. */
    let maskedKeys = 0
    /** The objects and arrays that contain the current position, outermost first. */
    const containers: Array<{ readonly start: number, readonly key: string, media?: string }> = []
    const mediaOf = (): string => {
      const inner = containers.at(-1)
      if (!isResult || inner === undefined) return ''
      if (!contentItem.test(containers.map(({ key }) => key).join())) return ''
      inner.media ??= mediaMember(json, inner.start)
      return inner.media
    }
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
        let masked = isKey ? this.plain(text) : this.#string(text, key, mediaOf)
        if (isKey && masked !== text && ++maskedKeys > 1) masked += ` ${maskedKeys}`
        if (masked !== text) replace(at, end, JSON.stringify(masked))
        if (isKey) key = text
        at = end
      } else if (code === MINUS || isDigit(code)) {
        const end = skipValue(json, at)
        // The mask is a number too, so that the value still fits its schema.
        if (this.#isCardNumber(json.slice(at, end))) replace(at, end, '0')
        at = end
      } else {
        if (isOpening(code)) containers.push({ start: at, key })
        else if (isClosing(code)) key = containers.pop()?.key ?? ''
        at++
      }
    }
    return from === 0 ? json : parts.join('') + json.slice(from)
  }

  /** Masks content in the text of a member. In a text that is a JSON object or array, numbers stay numbers. */
  #text (text: string): string {
    return this.plain(isJson(text) ? this.json(text, false) : text)
  }

  /**
   * Masks a string. A string in `blob` or `data` that is text in base64 is decoded, masked and encoded again. Long
   * binary media data in base64, which occur in results, are returned unchanged.
   * @param key the name of the member that contains the string, directly or in an array
   * @param mediaOf returns the name of the member with media data in the innermost object; '' if there is none
   */
  #string (text: string, key: string, mediaOf: () => string): string {
    if (text.length < minContentLength || (key !== 'blob' && key !== 'data')) return this.#text(text)
    const encoded = text.replace(/\s+/g, '')
    const encoding = /^[A-Za-z0-9+/]+={0,2}$/.test(encoded)
      ? 'base64'
      : /^[\w-]+={0,2}$/.test(encoded) ? 'base64url' : undefined
    if (encoding === undefined) return this.#text(text)
    const bytes = Buffer.from(encoded, encoding)
    const charset = charsetOf(bytes)
    if (charset !== undefined) {
      const content = bytes.toString(charset)
      const masked = this.#text(content)
      if (masked !== content) return Buffer.from(masked, charset).toString(encoding)
    }
    const isBinary = charset === undefined && encoding === 'base64' && encoded === text && text.length >= minMediaLength
    return isBinary && mediaOf() === key ? text : this.plain(text)
  }

  #isCardNumber (text: string): boolean {
    if (!this.#finders.some(([kind]) => kind === 'card')) return false
    const digits = /^-?\d+$/.test(text) ? text.replace('-', '') : String(Math.abs(Number(text)))
    if (!isCard(digits)) return false
    this.found.add('card')
    return true
  }

  #rangesIn (text: string): SecretRange[] {
    const ranges: SecretRange[] = []
    for (const [kind, find] of this.#finders) {
      for (const { start, end } of find(text)) {
        // Content that begins within an escape is found when the decoded text is searched.
        if (escapeAround(text, start) !== undefined) continue
        ranges.push({ start, end, shown: marks[kind] })
        this.found.add(kind)
      }
    }
    return ranges
  }

  /**
   * Finds content in a text in which the marks of escapes (such as `%` and `\u`) are replaced by spaces. A range that
   * begins within an escape is extended to the start of the escape.
   */
  #rangesBesideEscapes (text: string): SecretRange[] {
    const reading = text.replace(escapeMark, (mark) => ' '.repeat(mark.length))
    if (reading === text) return []
    return this.#rangesIn(reading).map((range) => ({ ...range, start: escapeAround(text, range.start) ?? range.start }))
  }
}

/** Whether a text is a JSON object or array. */
const isJson = (text: string): boolean => /^\s*[{[]/.test(text) && parseIfJson(text) !== undefined

/** Matches the part of an escape that is not its hexadecimal digits. */
const escapeMark = /\\(?:u(?=[\da-fA-F]{4})|["\\/bfnrt])|%(?=[\da-fA-F]{2})/g

/**
 * Returns the name of the member with media in base64, for an image, audio or resource object of MCP; otherwise ''.
 * @param start the index of the object in the JSON text
 */
function mediaMember (json: string, start: number): string {
  const texts = new Map(membersOf(json.slice(start, skipValue(json, start)))
    .map((member) => [member.key, json.slice(start + member.start, start + member.end)]))
  if (texts.get('type') === '"image"' || texts.get('type') === '"audio"') return texts.has('mimeType') ? 'data' : ''
  return texts.get('uri')?.startsWith('"') === true ? 'blob' : ''
}

/**
 * Returns the character set of bytes: `utf8` if they are valid UTF-8, `latin1` if they contain no control characters
 * except white space, and undefined for binary data.
 */
function charsetOf (bytes: Buffer): 'utf8' | 'latin1' | undefined {
  if (isUtf8(bytes)) return 'utf8'
  return bytes.some((byte) => byte < 0x20 && (byte < 0x09 || byte > 0x0d)) ? undefined : 'latin1'
}

const escape = /\\(?:u[\da-fA-F]{4}|["\\/bfnrt])|%[\da-fA-F]{2}/y
const longestEscape = 6

/** Returns the start of the JSON or URL escape that surrounds a position; undefined if there is none. */
function escapeAround (text: string, place: number): number | undefined {
  for (let at = Math.max(0, place - longestEscape + 1); at < place; at++) {
    escape.lastIndex = at
    if (!escape.test(text) || escape.lastIndex <= place) continue
    // A backslash that is itself escaped does not start an escape.
    let first = at
    while (text.charAt(first - 1) === '\\') first--
    if ((at - first) % 2 === 0) return at
  }
  return undefined
}
