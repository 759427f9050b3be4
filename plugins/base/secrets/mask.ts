import { isObject } from '../../../protocol/json.ts'
import { coverText, isAbsoluteUrl, type Cover } from './tokens.ts'

const dots = '••••'

/**
 * Whether a text is no secret at any place: it is empty, a variable (`${NAME}`) or an option of a bundle
 * (`${user_config.name}`).
 */
export const isNoSecret = (value: string): boolean =>
  value === '' || /^\$\{(user_config\.[\w-]+|[A-Za-z_]\w*)\}$/.test(value)

/** A secret as it may be shown: dots, and the last four characters of a secret of twelve or more. */
export function mask (secret: string): string {
  if (isNoSecret(secret)) return secret
  return secret.length < 12 ? dots : `${dots}${/[!-~]{4}$/.exec(secret)?.[0] ?? ''}`
}

/** Whether a value is a text that contains a mask. */
export const isMask = (value: unknown): boolean => typeof value === 'string' && value.includes(dots)

/** Names of members, arguments and query parameters with secret values. */
const secretName =
  /(key|token|secret|passw|passphrase|(?<![a-z])pass(?![a-z])|pwd|auth|credential|signature|verifier|cookie)/i

/** Names of members that describe a secret: the name of a header, an authentication method, a hash. */
const aboutSecrets = /(name|type|method|scheme|hash|mask)$/i

/** Names of members that hold an address, though they match `secretName`: `tokenUrl`, `authorizationEndpoint`. */
const addressName = /(url|uri|endpoint)$/i

/** A URL as it may be shown: user, password and the values of its query are masked. */
export function maskUrl (text: string, cover: Cover = mask): string {
  const parsed = URL.canParse(text) ? new URL(text) : undefined
  // Up to the last @, since passwords may contain @ and / without encoding; also where a URL cannot be parsed (several
  // hosts, `${HOST}`).
  const hasUser = parsed !== undefined && parsed.username + parsed.password !== ''
  let isCovered = false
  const shown = text.replace(userinfoOf(parsed, hasUser), (whole: string, head: string) => {
    isCovered = true
    return `${head}${coverUser(whole.slice(head.length, -1), cover)}@`
  })
  // Unusual forms with a user: `http:user:password@host`, `user:password@host`.
  if (!isCovered && (hasUser || (text.includes('@') && !text.includes('//')))) return cover(text, 'url')
  const [, base = '', query, fragment = ''] = /^([^?#]*)(?:\?([^#]*))?(#.*)?$/s.exec(shown) ?? []
  const shownQuery = query === undefined
    ? ''
    : `?${query.split('&').map((each) => maskParameter(each, cover)).join('&')}`
  const shownFragment = /[=@]/.test(fragment) ? `#${cover(fragment.slice(1), 'fragment')}` : fragment
  return `${base}${shownQuery}${shownFragment}`
}

/** Covers a user and password completely. */
const coverUser = (userinfo: string, cover: Cover): string => cover === mask ? dots : cover(userinfo, 'userinfo')

/**
 * The pattern of a URL up to its userinfo, with the text before it as group 1.
 * @param parsed undefined: the URL cannot be parsed
 */
function userinfoOf (parsed: URL | undefined, hasUser: boolean): RegExp {
  if (parsed === undefined) return /^([^/]*\/\/).*@/s
  return hasUser ? /^([^/?#]*\/\/)[^?#]*@/ : /^([^/?#]*\/\/)[^/?#]*@/
}

function maskParameter (text: string, cover: Cover): string {
  const [, name, value] = /^([^=]*)=(.*)$/s.exec(text) ?? []
  if (name !== undefined && value !== undefined) return `${name}=${cover(value, name)}`
  return text === '' ? '' : cover(text, 'query')
}

const flag = /^-{1,2}[\w.-]+$/
const headerFlag = /^(-H|--headers?)$/
const secretFlag = /^-{1,2}(bearer|jwt|pat)$/i
/** Arguments about the tokens of a language model: their number, and what splits texts. */
const isAboutTokens = (name: string, value: string): boolean =>
  /tokeni[sz]er/i.test(name) || (/tokens/i.test(name) && /^\d{1,9}$/.test(value))
const userFlag = /^(-u|--user)$/
const scheme = /^(bearer|basic)$/i

/**
 * Arguments of a command as they may be shown: values after `--api-key` or `--header`, of `--token=`, and tokens are
 * masked.
 */
const maskArgs = (args: readonly unknown[], cover: Cover = mask): unknown[] =>
  maskNamed(args, cover).map((arg) => typeof arg === 'string' ? coverText(arg, cover) : arg)

/** Masks the arguments that a flag or a name marks as secret. */
function maskNamed (args: readonly unknown[], cover: Cover): unknown[] {
  return args.map((arg, at) => {
    if (typeof arg !== 'string') return arg
    const before = args[at - 1]
    if (typeof before !== 'string' || !flag.test(before)) return maskWord(arg, cover)
    if (headerFlag.test(before)) return maskHeader(arg, cover)
    const [, user, password] = userFlag.test(before) ? /^([^:]*:)(.*)$/s.exec(arg) ?? [] : []
    if (user !== undefined && password !== undefined) return `${user}${cover(password, 'password')}`
    // A secret may begin with a dash. A flag without a value is followed by another flag, `--long` or `-s`.
    const isNamed = (secretName.test(before) || secretFlag.test(before)) && !isAboutTokens(before, arg)
    return isNamed && !/^(--|-[a-z]$)/i.test(arg) ? cover(arg, before) : maskWord(arg, cover)
  })
}

/**
 * One argument as it may be shown: `--token=…`, `API_KEY=…`, `--env=API_KEY=…`, `--header=X: …`, `Authorization: …`, a
 * URL, or JSON.
 * @param isInner whether it is the value after the `=` of another one
 */
function maskWord (text: string, cover: Cover, isInner = false): string {
  const [, name, value] = /^(-{0,2}[\w.-]+)=(.*)$/s.exec(text) ?? []
  if (name !== undefined && value !== undefined) {
    if (secretName.test(name) && !isAboutTokens(name, value)) return `${name}=${cover(value, name)}`
    if (!isInner) return `${name}=${headerFlag.test(name) ? maskHeader(value, cover) : maskWord(value, cover, true)}`
    return isAbsoluteUrl(value) ? `${name}=${maskUrl(value, cover)}` : maskCommand(text, cover)
  }
  if (isAbsoluteUrl(text)) return maskUrl(text, cover)
  if (secretName.test(/^[\w-]+(?=:)/.exec(text)?.[0] ?? '')) return maskHeader(text, cover)
  if (/^[{[]/.test(text)) return secretName.test(text) ? cover(text, 'json') : text
  return maskCommand(text, cover)
}

/**
 * A command, or a list of settings, within one argument: `export TOKEN=…; run`, `host=h password=…`,
 * `curl -H 'Authorization: Bearer …'`.
 */
function maskCommand (text: string, cover: Cover): string {
  const parts = text.split(/([\s;]+)/)
  if (parts.length === 1) return text
  return parts.map((part, at) => {
    const before = parts[at - 2]
    const [, quote = '', word = ''] = /^(['"]*)(.*)$/s.exec(part) ?? []
    if (at % 2 === 1 || word === '') return part
    const followsName =
      before !== undefined && /(:|^-.*)$/.test(before) && secretName.test(before) && !scheme.test(word)
    const isSecret = followsName || (before !== undefined && scheme.test(before))
    return `${quote}${isSecret ? cover(word, before ?? '') : maskPart(word, cover)}`
  }).join('')
}

/** One word of a longer text. */
function maskPart (word: string, cover: Cover): string {
  const [, name, value] = /^(-{0,2}[\w.-]+)=(.*)$/s.exec(word) ?? []
  if (name !== undefined && value !== undefined && secretName.test(name)) return `${name}=${cover(value, name)}`
  return isAbsoluteUrl(word) ? maskUrl(word, cover) : word
}

/** A header within one argument, `Name: value`. */
function maskHeader (text: string, cover: Cover): string {
  const [, name, value] = /^([\w-]+: *)(.*)$/s.exec(text) ?? []
  return name === undefined || value === undefined ? cover(text, 'header') : `${name}${cover(value, name)}`
}

/** Members all of whose values are secrets, at any depth. */
const secretMaps = new Set(['env', 'headers'])

/** Members without secrets: an admin's overrides of items, with the servers' names as keys. */
const openMembers = new Set(['tools', 'prompts', 'resources'])

/** A server's config, or the system configuration, as it may be shown to its managers. */
export const maskConfig = (config: Readonly<Record<string, unknown>>, cover: Cover = mask): Record<string, unknown> =>
  maskMembers(config, '', cover)

/** @param parent the name of the member whose members these are; empty at the top */
function maskMembers (
  members: Readonly<Record<string, unknown>>, parent: string, cover: Cover
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(members).map(([key, value]) =>
      [key, parent === '' && openMembers.has(key) ? value : maskMember(key, value, parent, cover)])
  )
}

/** Masked OpenAPI documents, by the document. */
const described = new WeakMap<object, unknown>()

/**
 * An OpenAPI document, or its text, as it may be shown: its addresses may hold credentials, the rest is not secret.
 * Documents are large and never changed in place, so the result is kept.
 */
function maskDescription (document: unknown, cover: Cover): unknown {
  if (typeof document === 'string') return maskText(document, cover)
  if (typeof document !== 'object' || document === null) return document
  if (cover !== mask) return maskTargets(document, '', '', cover)
  if (!described.has(document)) described.set(document, maskTargets(document, '', '', mask))
  return described.get(document)
}

/**
 * A document with the addresses masked to which calls and credentials go. Parts without secrets are shared, not copied.
 */
function maskTargets (value: unknown, key: string, parent: string, cover: Cover): unknown {
  if (typeof value === 'string') {
    const isTarget =
      addressMember.test(key) || (key === 'url' && parent === 'servers') || (key === 'host' && parent === '')
    return isTarget ? maskUrl(value, cover) : value
  }
  if (typeof value !== 'object' || value === null) return value
  // Copied only where something changed: a document may have 100,000 values.
  const isList = Array.isArray(value)
  const parts = value as Record<string, unknown>
  const around = key === '' && !isList ? parent : key
  let masked: Record<string, unknown> | undefined
  for (const name in parts) {
    const each = parts[name]
    const shown = maskTargets(each, isList ? '' : name, around, cover)
    if (shown === each) continue
    masked ??= (isList ? [...value] : { ...value }) as Record<string, unknown>
    masked[name] = shown
  }
  return masked ?? value
}

const addressMember = /^(token|authorization|refresh|openIdConnect)Url$/
const addressInText = /\b((?:url|(?:token|authorization|refresh|openIdConnect)Url)["']?\s*:\s*["']?)([^\s"',}]+)/g

/** The same for a document as JSON or YAML text, without parsing it; userinfo is masked in every address. */
const maskText = (text: string, cover: Cover): string =>
  text
    .replace(addressInText,
      (whole, name: string, address: string) => (/[?@#]/.test(address) ? `${name}${maskUrl(address, cover)}` : whole))
    .replace(/(:\/\/)([^\s/?#"']*)@/g,
      (_whole, head: string, userinfo: string) => `${head}${coverUser(userinfo, cover)}@`)

/**
 * One member of a config as it may be shown.
 * @param parent the name of the member that contains it; empty at the top
 */
function maskMember (key: string, value: unknown, parent: string, cover: Cover): unknown {
  if (key === 'schema' && parent === 'openapi') return maskDescription(value, cover)
  if (secretMaps.has(key) && typeof value === 'object') return maskAll(value, cover)
  if (Array.isArray(value)) {
    return key === 'args' ? maskArgs(value, cover) : value.map((each) => maskMember(key, each, parent, cover))
  }
  if (isObject(value)) return maskMembers(value, key, cover)
  if (typeof value !== 'string') return value
  if (addressName.test(key)) return maskUrl(value, cover)
  // `apiKey: {name, in, value}`, as OpenAPI's security schemes are given.
  const owner = parent === 'security' ? 'apiKey' : parent
  const name = key === 'value' ? owner : key
  if (secretName.test(name) && !aboutSecrets.test(name)) return cover(value, name)
  return isAbsoluteUrl(value) ? maskUrl(value, cover) : value
}

/** Masks all texts and numbers within a value. Booleans are not secret. */
export function maskAll (value: unknown, cover: Cover = mask, hint = ''): unknown {
  if (Array.isArray(value)) return value.map((each) => maskAll(each, cover, hint))
  if (isObject(value)) {
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, maskAll(each, cover, key)]))
  }
  return typeof value === 'string' || typeof value === 'number' ? cover(String(value), hint) : value
}

/**
 * A config sent by a client that was shown masks, with each mask replaced by the stored secret at the same path.
 * @returns the config, which is the one sent where no mask was replaced, and the paths of masks that stand for no
 *   secret
 */
export const unmask = (sent: unknown, stored: unknown, shown: unknown): Unmasked =>
  // Most configs have none, and may have a megabyte.
  holdsMask(sent) ? unmaskPart(sent, stored, shown, '') : { value: sent, unknown: [] }

interface Unmasked { value: unknown, unknown: string[] }

function unmaskPart (sent: unknown, stored: unknown, shown: unknown, path: string): Unmasked {
  if (isMask(sent)) {
    return sent === shown && stored !== undefined ? { value: stored, unknown: [] } : { value: sent, unknown: [path] }
  }
  if (Array.isArray(sent)) {
    const [secrets, masked] = Array.isArray(stored) && Array.isArray(shown) ? [stored, shown] : [[], []]
    const kept = keptIndices(sent, masked)
    const parts = sent.map((each, at) => kept.has(at) && holdsMask(each)
      ? { value: secrets[at] as unknown, unknown: [] }
      : unmaskPart(each, undefined, undefined, `${path}.${at}`)
    )
    const isSame = parts.every(({ value }, at) => value === sent[at])
    return { value: isSame ? sent : parts.map(({ value }) => value), unknown: parts.flatMap((part) => part.unknown) }
  }
  if (!isObject(sent)) return { value: sent, unknown: [] }
  const unknown: string[] = []
  let isSame = true
  const entries = Object.entries(sent).map(([key, each]) => {
    const part = unmaskPart(
      each,
      isObject(stored) && Object.hasOwn(stored, key) ? stored[key] : undefined,
      isObject(shown) && Object.hasOwn(shown, key) ? shown[key] : undefined,
      path === '' ? key : `${path}.${key}`
    )
    for (const mask of part.unknown) unknown.push(mask)
    isSame &&= part.value === each
    return [key, part.value]
  })
  return { value: isSame ? sent : Object.fromEntries(entries), unknown }
}

/** Whether a mask is somewhere within a value. */
function holdsMask (value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return isMask(value)
  for (const name in value) if (holdsMask((value as Record<string, unknown>)[name])) return true
  return false
}

/**
 * The indices of a list at which the sent element is the shown one. Masks look alike, and elements may have been
 * removed, so a mask is identified by the element before it, and an element that contains masks by its content.
 */
function keptIndices (sent: readonly unknown[], shown: readonly unknown[]): Set<number> {
  // Nested lists have nothing shown, and need no comparison.
  if (shown.length === 0) return new Set()
  const [now, before] = [sent.map(signatureOf), shown.map(signatureOf)]
  const seen = new Set<string>()
  const repeated = new Set(before.filter((signature) => seen.size === seen.add(signature).size))
  const isShorter = now.length < before.length
  const isKept = (signature: string, at: number): boolean =>
    signature === before[at] && !(isShorter && repeated.has(signature))
  return new Set(now.flatMap((signature, at) => isKept(signature, at) ? [at] : []))
}

/** A text that identifies an element of a list. */
const signatureOf = (element: unknown, at: number, list: readonly unknown[]): string =>
  JSON.stringify(typeof element === 'string' && element.startsWith(dots) ? [list[at - 1], element] : element)
