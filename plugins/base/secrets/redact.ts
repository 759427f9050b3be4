import { mask } from './mask.ts'
import { maskConfig } from './mask-config.ts'
import { maskedParts } from './masked-parts.ts'
import { maskFoundSecrets } from './mask-decoded.ts'

/** Min length of a secret that is redacted, in characters: a shorter one would match within ordinary words. */
const minSecretLength = 6

/**
 * Number of characters beyond the max length that are also redacted before a text is truncated. Otherwise, a part of a
 * secret at the cut could remain.
 */
export const redactionMargin = 2_048

/**
 * Creates a function that masks the secrets of a server's config in texts, such as errors, or lines of its stderr.
 * @param config the config, in which variables have been expanded
 */
export const createConfigRedactor = (config: Readonly<Record<string, unknown>>): ((text: string) => string) =>
  createRedactor(secretsOf(config))

/** Returns the secrets of a config: as they are, escaped as in JSON, and percent-encoded. Omits very short ones. */
export function secretsOf (config: Readonly<Record<string, unknown>>): string[] {
  const found = new Set<string>()
  for (const [, value, shown] of maskedParts(config, maskConfig(config))) {
    if (typeof value === 'number') found.add(String(value))
    else if (typeof value === 'string' && typeof shown === 'string') {
      for (const [secret, masked] of maskedWords(value, shown)) {
        for (const part of partsOfSecret(secret, masked)) found.add(part)
      }
    }
  }
  return [...found]
    .flatMap((each) => [each, JSON.stringify(each).slice(1, -1), tryCode(encodeURIComponent, each)])
    .filter((each) => each.length >= minSecretLength)
}

/** Creates a function that masks the given secrets in a text. @param secrets each has three characters or more */
export function createRedactor (secrets: readonly string[]): (text: string) => string {
  if (secrets.length === 0) return (text) => text
  const scanner = new SecretScanner(secrets)
  return (text) => maskFoundSecrets(text, (decoded) =>
    scanner.search(decoded).map(({ start, end }) => ({ start, end, shown: mask(decoded.slice(start, end)) })))
}

/** Returns the masked words of a text such as an OpenAPI document, or the whole text if words cannot be compared. */
function maskedWords (value: string, shown: string): Array<[secret: string, masked: string]> {
  const [words, masked] = [value.split(/[\s"']+/), shown.split(/[\s"']+/)]
  if (words.length !== masked.length) return [[value, shown]]
  return words.flatMap((word, at): Array<[string, string]> => word === masked[at] ? [] : [[word, masked[at] ?? '']])
}

/** Returns a secret and its parts that may occur alone: words, and the password and query values of a URL. */
function partsOfSecret (value: string, shown: string): string[] {
  const at = shown.indexOf('••••')
  const whole = at > 0 && value.startsWith(shown.slice(0, at)) ? value.slice(at) : value
  const parts = [whole, ...whole.split(/\s+/)]
  if (!URL.canParse(value)) return parts
  const { username, password, searchParams, search } = new URL(value)
  // If there is a password, the user name alone is not redacted: it may be an ordinary word.
  return [
    ...(username === '' && search === '' ? parts : []),
    password,
    tryCode(decodeURIComponent, password),
    ...(password === '' ? [username] : []),
    ...searchParams.values(),
    ...search
      .slice(1)
      .split('&')
      .map((each) => each.replace(/^[^=]*=/, ''))
  ]
}

/** Percent-encodes or percent-decodes a text; returns it unchanged if it is invalid (lone surrogate, bad escape). */
function tryCode (code: (text: string) => string, text: string): string {
  try {
    return code(text)
  } catch {
    return text
  }
}

/** Longer secrets are divided into pieces of this length, in characters. */
const pieceLength = 1_024

/** A range of a text, `text.slice(start, end)`, that consists of secrets. */
interface FoundRange { start: number, end: number }

/**
 * Finds secrets in texts, in one pass regardless of the number of secrets. The secrets are sorted, so that binary
 * search finds the longest one at a position; a hash table of their first three characters skips most positions.
 */
export class SecretScanner {
  readonly #sorted: readonly string[]
  /** For each secret, the index of the longest other secret that it starts with; -1: none. */
  readonly #shorter: Int32Array
  /** 1 at the hash of the first three characters of each secret. The length is a power of two. */
  readonly #begins: Uint8Array
  readonly #longest: number

  /** @param secrets each has three characters or more */
  constructor (secrets: Iterable<string>) {
    const sorted = [...new Set([...secrets].flatMap(piecesOf))].sort()
    this.#sorted = sorted
    this.#longest = sorted.reduce((most, { length }) => Math.max(most, length), 0)
    this.#begins = new Uint8Array(2 ** Math.ceil(Math.log2(8 * sorted.length + 1)))
    this.#shorter = new Int32Array(sorted.length)
    for (const [at, secret] of sorted.entries()) {
      this.#begins[this.#hashAt(secret, 0)] = 1
      // All prefixes of a secret sort before it. The longest one is the previous secret, or a prefix of the previous
      // one.
      let other = at - 1
      while (other !== -1 && !secret.startsWith(sorted[other] ?? '')) other = this.#shorter[other] ?? -1
      this.#shorter[at] = other
    }
  }

  /** Returns the ranges of a text that consist of secrets, in order. Overlapping and adjacent ones form one range. */
  search (text: string): FoundRange[] {
    const found: FoundRange[] = []
    if (this.#sorted.length === 0) return found
    for (let start = 0; start < text.length - 2; start++) {
      if (this.#begins[this.#hashAt(text, start)] !== 1) continue
      const length = this.#longestAt(text, start)
      if (length === 0) continue
      const end = start + length
      const last = found.at(-1)
      if (last === undefined || start > last.end) found.push({ start, end })
      else if (end > last.end) last.end = end
    }
    return found
  }

  /** Returns the length of the longest secret at a position of a text; 0 if there is none. */
  #longestAt (text: string, start: number): number {
    const here = text.slice(start, start + this.#longest)
    let from = 0
    let to = this.#sorted.length
    while (from < to) {
      const middle = (from + to) >> 1
      if ((this.#sorted[middle] ?? '') <= here) from = middle + 1
      else to = middle
    }
    let at = from - 1
    while (at !== -1 && !here.startsWith(this.#sorted[at] ?? '')) at = this.#shorter[at] ?? -1
    return at === -1 ? 0 : this.#sorted[at]?.length ?? 0
  }

  #hashAt (text: string, at: number): number {
    const mixed = (text.charCodeAt(at) * 0x9e5b) ^ (text.charCodeAt(at + 1) * 0x2f1d) ^ (text.charCodeAt(at + 2) * 0x71)
    return mixed & (this.#begins.length - 1)
  }
}

/** Divides a secret into pieces, so that a part of a long secret is found, too. The last two pieces may overlap. */
function piecesOf (secret: string): string[] {
  if (secret.length <= pieceLength) return [secret]
  const pieces: string[] = []
  for (let at = 0; at + pieceLength < secret.length; at += pieceLength) pieces.push(secret.slice(at, at + pieceLength))
  return [...pieces, secret.slice(-pieceLength)]
}
