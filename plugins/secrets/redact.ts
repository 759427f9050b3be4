import { isObject } from '../../protocol/json.ts'
import { mask, maskConfig } from './mask.ts'

/** Shorter ones are no secrets, and stand in many words. */
const shortest = 6

/**
 * What takes the secrets of a config out of a text that people read: an error of its upstream, a line that a child printed.
 * @param config as it is used, its variables filled in
 */
export function redactor (config: Readonly<Record<string, unknown>>): (text: string) => string {
  const found = new Set<string>()
  collect(config, maskConfig(config), found)
  const secrets = [...found]
    .flatMap((each) => [each, JSON.stringify(each).slice(1, -1), coded(encodeURIComponent, each)])
    .filter((each, at, all) => all.indexOf(each) === at)
    .filter((each) => each.length >= shortest)
    .sort((a, b) => b.length - a.length)
  return (text) => secrets.reduce((rest, secret) => rest.includes(secret) ? rest.replaceAll(secret, mask(secret)) : rest, text)
}

/** The secret parts of all texts that are shown in another way than they are. */
function collect (value: unknown, shown: unknown, found: Set<string>): void {
  if (value === shown) return
  if (typeof value === 'string' && typeof shown === 'string') {
    for (const [secret, masked] of differing(value, shown)) for (const part of partsOf(secret, masked)) found.add(part)
  } else if (typeof value === 'number') found.add(String(value))
  else if (Array.isArray(value) && Array.isArray(shown)) {
    value.forEach((each, at) => {
      collect(each, shown[at], found)
    })
  } else if (isObject(value) && isObject(shown)) for (const [key, each] of Object.entries(value)) collect(each, shown[key], found)
}

/** Of a text that is shown but for some words, as an OpenAPI document, these words; else the whole of it. */
function differing (value: string, shown: string): Array<[secret: string, masked: string]> {
  const [words, masked] = [value.split(/[\s"']+/), shown.split(/[\s"']+/)]
  if (words.length !== masked.length) return [[value, shown]]
  return words.flatMap((word, at): Array<[string, string]> => word === masked[at] ? [] : [[word, masked[at] ?? '']])
}

/** A secret as a whole, and what of it may stand elsewhere by itself: the token behind a scheme, the password of an address. */
function partsOf (value: string, shown: string): string[] {
  const at = shown.indexOf('••••')
  const whole = at > 0 && value.startsWith(shown.slice(0, at)) ? value.slice(at) : value
  const parts = [whole, ...whole.split(/\s+/)]
  if (!URL.canParse(value)) return parts
  const { username, password, searchParams, search } = new URL(value)
  // A user's name by itself is in many words.
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

/** As it stands in an address, or was meant by one; half a character can stand in none. */
function coded (code: (text: string) => string, text: string): string {
  try {
    return code(text)
  } catch {
    return text
  }
}
