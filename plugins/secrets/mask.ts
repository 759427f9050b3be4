import { isObject } from '../../protocol/json.ts'

const dots = '••••'

/** A secret as it may be shown: that there is one, and its last four characters where it is long enough to spare them. */
export const mask = (secret: string): string => secret.length < 12 ? dots : `${dots}${/[!-~]{4}$/.exec(secret)?.[0] ?? ''}`

export const isMask = (value: unknown): boolean => typeof value === 'string' && value.includes(dots)

/** Names of members, arguments and query parameters whose values are secrets. */
const secretName = /(key|token|secret|passw|pwd|auth|credential|signature|verifier|cookie)/i

/** Members that say something about a secret: the name of a header, how a client authenticates, a hash. */
const aboutSecrets = /(name|type|method|scheme|hash|mask)$/i

/** Members that hold an address, though one of a token, or of a login. */
const addressName = /(url|uri|endpoint)$/i

export const isAddress = (text: string): boolean => /^[a-z][a-z0-9+.-]*:\/\//i.test(text)

/** An address as it may be shown: without user and password, and without the values of its query. */
export function maskUrl (text: string): string {
  const parsed = URL.canParse(text) ? new URL(text) : undefined
  // The last @ counts: passwords hold @ and / that should have been encoded. What cannot be parsed (several hosts, `${HOST}`) is hidden up to there.
  const userinfo =
    parsed === undefined
      ? /^([^/]*\/\/).*@/s
      : parsed.username + parsed.password === ''
        ? /^([^/?#]*\/\/)[^/?#]*@/
        : /^([^/?#]*\/\/)[^?#]*@/
  const shown = text.replace(userinfo, `$1${dots}@`)
  // Odd forms that have a user all the same: `http:user:password@host`, `user:password@host`.
  if (shown === text && ((parsed && parsed.username + parsed.password !== '') || (text.includes('@') && !text.includes('//')))) {
    return mask(text)
  }
  const [, base = '', query, fragment = ''] = /^([^?#]*)(?:\?([^#]*))?(#.*)?$/s.exec(shown) ?? []
  return `${base}${query === undefined ? '' : `?${query.split('&').map(maskParameter).join('&')}`}${/[=@]/.test(fragment) ? `#${mask(fragment)}` : fragment}`
}

function maskParameter (text: string): string {
  const [, name, value] = /^([^=]*)=(.*)$/s.exec(text) ?? []
  if (name !== undefined && value !== undefined) return `${name}=${mask(value)}`
  return text === '' ? '' : mask(text)
}

const flag = /^-{1,2}[\w.-]+$/
const headerFlag = /^(-H|--headers?)$/
const secretFlag = /^-{1,2}(bearer|jwt|pat)$/i
const userFlag = /^(-u|--user)$/
const scheme = /^(bearer|basic)$/i

/** Arguments as they may be shown: what follows `--api-key` or `--header`, or stands behind `--token=`, is masked. */
export function maskArgs (args: readonly unknown[]): unknown[] {
  return args.map((arg, at) => {
    if (typeof arg !== 'string') return arg
    const before = args[at - 1]
    if (typeof before !== 'string' || !flag.test(before)) return maskWord(arg)
    if (headerFlag.test(before)) return maskHeader(arg)
    const [, user, password] = userFlag.test(before) ? /^([^:]*:)(.*)$/s.exec(arg) ?? [] : []
    if (user !== undefined && password !== undefined) return `${user}${mask(password)}`
    // A secret may begin with a dash; a flag that takes no value is followed by a short or a long one.
    return (secretName.test(before) || secretFlag.test(before)) && !/^(--|-[a-z]$)/i.test(arg) ? mask(arg) : maskWord(arg)
  })
}

/**
 * One argument by itself: `--token=…`, `API_KEY=…`, `--env=API_KEY=…`, `--header=X: …`, `Authorization: …`, an address, or settings as JSON.
 * @param inner it stands behind the `=` of another one
 */
function maskWord (text: string, inner = false): string {
  const [, name, value] = /^(-{0,2}[\w.-]+)=(.*)$/s.exec(text) ?? []
  if (name !== undefined && value !== undefined) {
    if (secretName.test(name)) return `${name}=${mask(value)}`
    if (!inner) return `${name}=${headerFlag.test(name) ? maskHeader(value) : maskWord(value, true)}`
    return isAddress(value) ? `${name}=${maskUrl(value)}` : maskCommand(text)
  }
  if (isAddress(text)) return maskUrl(text)
  if (secretName.test(/^[\w-]+(?=:)/.exec(text)?.[0] ?? '')) return maskHeader(text)
  if (/^[{[]/.test(text)) return secretName.test(text) ? mask(text) : text
  return maskCommand(text)
}

/** A command, or a list of settings, in one argument: `export TOKEN=…; run`, `host=h password=…`, `curl -H 'Authorization: Bearer …'`. */
function maskCommand (text: string): string {
  const parts = text.split(/([\s;]+)/)
  if (parts.length === 1) return text
  return parts.map((part, at) => {
    const before = parts[at - 2]
    const [, quote = '', word = ''] = /^(['"]*)(.*)$/s.exec(part) ?? []
    if (at % 2 === 1 || word === '') return part
    const named =
      before !== undefined && (scheme.test(before) || (/(:|^-.*)$/.test(before) && secretName.test(before) && !scheme.test(word)))
    return `${quote}${named ? mask(word) : maskPart(word)}`
  }).join('')
}

/** A word of a longer text. */
function maskPart (word: string): string {
  const [, name, value] = /^(-{0,2}[\w.-]+)=(.*)$/s.exec(word) ?? []
  if (name !== undefined && value !== undefined && secretName.test(name)) return `${name}=${mask(value)}`
  return isAddress(word) ? maskUrl(word) : word
}

/** A header in one argument, `Name: value`. */
function maskHeader (text: string): string {
  const [, name, value] = /^([\w-]+: *)(.*)$/s.exec(text) ?? []
  return name === undefined || value === undefined ? mask(text) : `${name}${mask(value)}`
}

/** Members whose every value is a secret, wherever they stand. */
const secretMaps = new Set(['env', 'headers'])

/** What holds no secrets but names and texts of others: an admin's overrides. */
const openMembers = new Set(['tools', 'prompts', 'resources'])

/** A server's config, or the system configuration, as those may see it who manage it. */
export const maskConfig = (config: Readonly<Record<string, unknown>>): Record<string, unknown> => maskMembers(config, '')

/** @param parent the name of the member that these are the members of; none at the top */
function maskMembers (members: Readonly<Record<string, unknown>>, parent: string): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(members).map(([key, value]) => [key, parent === '' && openMembers.has(key) ? value : maskMember(key, value, parent)])
  )
}

const described = new WeakMap<object, unknown>()

/**
 * A whole OpenAPI document, or its text: names and texts of others, but its addresses may hold what opens them.
 * Documents are large, and nobody changes one in place: each is looked through once.
 */
function maskDescription (document: unknown): unknown {
  if (typeof document === 'string') return maskText(document)
  if (typeof document !== 'object' || document === null) return document
  if (!described.has(document)) described.set(document, maskPlaces(document, '', ''))
  return described.get(document)
}

/** The addresses of a document that calls and credentials go to. What holds no secret is shared with it. */
function maskPlaces (value: unknown, key: string, parent: string): unknown {
  if (typeof value === 'string') {
    return placeName.test(key) || (key === 'url' && parent === 'servers') || (key === 'host' && parent === '') ? maskUrl(value) : value
  }
  if (Array.isArray(value)) {
    const shown = value.map((each) => maskPlaces(each, '', key))
    return shown.some((each, at) => each !== value[at]) ? shown : value
  }
  if (!isObject(value)) return value
  const masked = Object.entries(value)
    .map(([name, each]): [string, unknown] => [name, maskPlaces(each, name, key === '' ? parent : key)])
    .filter(([name, each]) => each !== value[name])
  return masked.length === 0 ? value : { ...value, ...Object.fromEntries(masked) }
}

const placeName = /^(token|authorization|refresh|openIdConnect)Url$/
const placeInText = /\b((?:url|(?:token|authorization|refresh|openIdConnect)Url)["']?\s*:\s*["']?)([^\s"',}]+)/g

/** The same in JSON or YAML, as far as a text tells; a user in an address wherever it stands. */
const maskText = (text: string): string =>
  text
    .replace(placeInText, (whole, name: string, address: string) => (/[?@#]/.test(address) ? `${name}${maskUrl(address)}` : whole))
    .replace(/(:\/\/)[^\s/?#"']*@/g, `$1${dots}@`)

function maskMember (key: string, value: unknown, parent: string): unknown {
  if (key === 'schema' && parent === 'openapi') return maskDescription(value)
  if (secretMaps.has(key) && typeof value === 'object') return maskAll(value)
  if (Array.isArray(value)) return key === 'args' ? maskArgs(value) : value.map((each) => maskMember(key, each, parent))
  if (isObject(value)) return maskMembers(value, key)
  if (typeof value !== 'string') return value
  if (addressName.test(key)) return maskUrl(value)
  // `apiKey: {name, in, value}`, as OpenAPI's security schemes are given.
  const named = key === 'value' ? (parent === 'security' ? 'apiKey' : parent) : key
  if (secretName.test(named) && !aboutSecrets.test(named)) return mask(value)
  return isAddress(value) ? maskUrl(value) : value
}

/** Numbers are secrets, too, where every value is one; what is only yes or no is not. */
export function maskAll (value: unknown): unknown {
  if (Array.isArray(value)) return value.map(maskAll)
  if (isObject(value)) return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, maskAll(each)]))
  return typeof value === 'string' || typeof value === 'number' ? mask(String(value)) : value
}

/**
 * A config that came back from somebody who was shown masks: each mask stands for the secret at its place.
 * @returns the config, and the places whose masks stand for nothing
 */
export function unmask (sent: unknown, stored: unknown, shown: unknown, path = ''): { value: unknown, unknown: string[] } {
  if (isMask(sent)) return sent === shown && stored !== undefined ? { value: stored, unknown: [] } : { value: sent, unknown: [path] }
  if (Array.isArray(sent)) {
    const [secrets, masked] = Array.isArray(stored) && Array.isArray(shown) ? [stored, shown] : [[], []]
    const kept = placesKept(sent, masked)
    const parts = sent.map((each, at) =>
      kept.has(at) ? { value: secrets[at] as unknown, unknown: [] } : unmask(each, undefined, undefined, `${path}.${at}`)
    )
    return { value: parts.map(({ value }) => value), unknown: parts.flatMap((part) => part.unknown) }
  }
  if (!isObject(sent)) return { value: sent, unknown: [] }
  const unknown: string[] = []
  const entries = Object.entries(sent).map(([key, each]) => {
    const part = unmask(
      each,
      isObject(stored) && Object.hasOwn(stored, key) ? stored[key] : undefined,
      isObject(shown) && Object.hasOwn(shown, key) ? shown[key] : undefined,
      path === '' ? key : `${path}.${key}`
    )
    unknown.push(...part.unknown)
    return [key, part.value]
  })
  return { value: Object.fromEntries(entries), unknown }
}

/**
 * The places of a list where what came back is what was shown there. Masks look alike, so the place alone does not tell once
 * others before it are gone: a mask goes by the word before it, whatever else holds masks by the whole of it.
 */
function placesKept (sent: readonly unknown[], shown: readonly unknown[]): Set<number> {
  // Also that lists within lists are looked at once only.
  if (shown.length === 0) return new Set()
  const [now, then] = [sent.map(signOf), shown.map(signOf)]
  const once = new Set<string>()
  const twice = new Set(then.filter((sign) => once.size === once.add(sign).size))
  return new Set(now.flatMap((sign, at) => sign === then[at] && (now.length >= then.length || !twice.has(sign)) ? [at] : []))
}

/** What tells one of a list from the others. */
const signOf = (own: unknown, at: number, list: readonly unknown[]): string =>
  JSON.stringify(typeof own === 'string' && own.startsWith(dots) ? [list[at - 1], own] : own)
