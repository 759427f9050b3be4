import { isObject } from '../../../protocol/json.ts'
import { mask, maskConfig } from './mask.ts'
import { maskReadings } from './readings.ts'
import { SecretScanner } from './scan.ts'

/** Min length of a secret that is redacted, in characters: a shorter one would be found within ordinary words. */
const shortest = 6

/**
 * A function that masks the secrets of a config in a text for people: an error of its server, a line of a child's stderr.
 * @param config with its variables expanded
 */
export const redactor = (config: Readonly<Record<string, unknown>>): ((text: string) => string) => scrubber(secretsOf(config))

/** The secrets of a config, in the forms in which a text may hold them. */
export function secretsOf (config: Readonly<Record<string, unknown>>): string[] {
  const found = new Set<string>()
  collect(config, maskConfig(config), found)
  return [...found]
    .flatMap((each) => [each, JSON.stringify(each).slice(1, -1), coded(encodeURIComponent, each)])
    .filter((each) => each.length >= shortest)
}

/** A function that masks secrets in a text. @param secrets each of three characters or more */
export function scrubber (secrets: readonly string[]): (text: string) => string {
  if (secrets.length === 0) return (text) => text
  const scanner = new SecretScanner(secrets)
  return (text) => maskReadings(text, (reading) =>
    scanner.search(reading).map(({ start, end }) => ({ start, end, shown: mask(reading.slice(start, end)) })))
}

/** Collects the secret parts of all values that differ from their shown form. */
function collect (value: unknown, shown: unknown, found: Set<string>): void {
  if (value === shown) return
  if (typeof value === 'string' && typeof shown === 'string') {
    for (const [secret, masked] of differing(value, shown)) for (const part of partsOf(secret, masked)) found.add(part)
  } else if (typeof value === 'number') found.add(String(value))
  else if (Array.isArray(value) && Array.isArray(shown)) {
    value.forEach((each, at) => { collect(each, shown[at], found) })
  } else if (isObject(value) && isObject(shown)) {
    for (const [key, each] of Object.entries(value)) collect(each, shown[key], found)
  }
}

/** The masked words of a text of which only some words are masked, such as an OpenAPI document; else the whole text. */
function differing (value: string, shown: string): Array<[secret: string, masked: string]> {
  const [words, masked] = [value.split(/[\s"']+/), shown.split(/[\s"']+/)]
  if (words.length !== masked.length) return [[value, shown]]
  return words.flatMap((word, at): Array<[string, string]> => word === masked[at] ? [] : [[word, masked[at] ?? '']])
}

/** A secret, and its parts that may occur alone elsewhere: the token after a scheme, the password and query values of a URL. */
function partsOf (value: string, shown: string): string[] {
  const at = shown.indexOf('••••')
  const whole = at > 0 && value.startsWith(shown.slice(0, at)) ? value.slice(at) : value
  const parts = [whole, ...whole.split(/\s+/)]
  if (!URL.canParse(value)) return parts
  const { username, password, searchParams, search } = new URL(value)
  // A user name alone is not redacted when there is a password: it may be an ordinary word.
  return [
    ...(username === '' && search === '' ? parts : []),
    password,
    coded(decodeURIComponent, password),
    ...(password === '' ? [username] : []),
    ...searchParams.values(),
    ...search
      .slice(1)
      .split('&')
      .map((each) => each.replace(/^[^=]*=/, ''))
  ]
}

/** A percent-encoded or -decoded text; the text itself when that fails, for a lone surrogate or an invalid escape. */
function coded (code: (text: string) => string, text: string): string {
  try {
    return code(text)
  } catch {
    return text
  }
}
