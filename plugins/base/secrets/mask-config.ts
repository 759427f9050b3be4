import { isObject } from '../../../protocol/json.ts'
import { isAbsoluteUrl, type MaskSecret } from './mask-tokens.ts'
import { containsMask, mask, maskDots, secretNamePattern, maskUrl, maskUserInfo } from './mask.ts'
import { maskArgs } from './mask-args.ts'

/**
 * Matches names of members that describe a secret but do not contain it: the name of a header, an authentication
 * method, a hash.
 */
const aboutSecrets = /(name|type|method|scheme|hash|mask)$/i

/** Matches names of members that contain a URL, even if `secretNamePattern` matches, too, such as `tokenUrl`. */
const urlName = /(url|uri|endpoint)$/i

/** Members in which all values, at any depth, are secrets. */
const secretMaps = new Set(['env', 'headers'])

/**
 * Top-level members without secrets: overrides of items, whose keys are names that servers choose, and texts for
 * people.
 */
const openMembers = new Set(['tools', 'prompts', 'resources', 'skills', 'userVariables'])

/** Masks the secrets of a server's config, or of the system configuration, for display. */
export const maskConfig = (
  config: Readonly<Record<string, unknown>>, maskSecret: MaskSecret = mask
): Record<string, unknown> =>
  maskMembers(config, '', maskSecret)

/** Masks the secrets in an object. @param parent the name of the enclosing member; empty at the top */
function maskMembers (
  members: Readonly<Record<string, unknown>>, parent: string, maskSecret: MaskSecret
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(members).map(([key, value]) =>
      [key, parent === '' && openMembers.has(key) ? value : maskMember(key, value, parent, maskSecret)])
  )
}

/** Cache of OpenAPI documents with masked secrets, by document. */
const maskedDocuments = new WeakMap<object, unknown>()

/**
 * Masks an OpenAPI document, given as a value or as text. Only its URLs may contain credentials. The result of `mask`
 * is cached, since documents are large, and are never changed in place.
 * @param maskSecret replaces each credential; may also expand a variable in its place
 */
export function maskOpenApi (document: unknown, maskSecret: MaskSecret): unknown {
  if (typeof document === 'string') return maskText(document, maskSecret)
  if (typeof document !== 'object' || document === null) return document
  if (maskSecret !== mask) return mapTargets(document, '', '', (url) => maskUrl(url, maskSecret))
  if (!maskedDocuments.has(document)) maskedDocuments.set(document, mapTargets(document, '', '', (url) => maskUrl(url)))
  return maskedDocuments.get(document)
}

/** Replaces those URLs in a document to which calls or credentials are sent. Unchanged parts are not copied. */
function mapTargets (value: unknown, key: string, parent: string, replace: (url: string) => string): unknown {
  if (typeof value === 'string') {
    const isTarget =
      urlMember.test(key) || (key === 'url' && parent === 'servers') || (key === 'host' && parent === '')
    return isTarget ? replace(value) : value
  }
  if (typeof value !== 'object' || value === null) return value
  // Copied only if something changed: a document may have 100,000 values.
  const isList = Array.isArray(value)
  const parts = value as Record<string, unknown>
  const around = key === '' && !isList ? parent : key
  let masked: Record<string, unknown> | undefined
  for (const name in parts) {
    const each = parts[name]
    const shown = mapTargets(each, isList ? '' : name, around, replace)
    if (shown === each) continue
    masked ??= (isList ? [...value] : { ...value }) as Record<string, unknown>
    masked[name] = shown
  }
  return masked ?? value
}

const urlMember = /^(token|authorization|refresh|openIdConnect)Url$/
/** Matches a URL with the name of its member. Variables in it, `{name}` and `${NAME}`, do not end it. */
const urlInText =
  /\b((?:url|(?:token|authorization|refresh|openIdConnect)Url)["']?\s*:\s*["']?)((?:\{[^\s"'{}]*\}|[^\s"',}])+)/g

/**
 * Masks the URLs of servers and OAuth endpoints in a document given as JSON or YAML text, without parsing it. In other
 * URLs, masks only userinfo.
 */
const maskText = (text: string, maskSecret: MaskSecret): string =>
  text
    .replace(urlInText,
      (whole, name: string, url: string) => (/[?@#]/.test(url) ? `${name}${maskUrl(url, maskSecret)}` : whole))
    .replace(/(:\/\/)([^\s/?#"']*)@/g,
      (_whole, head: string, userinfo: string) => `${head}${maskUserInfo(userinfo, maskSecret)}@`)

/** Whether one of the URLs that are masked in an OpenAPI document contains a mask. */
function hasMaskedUrl (document: unknown): boolean {
  if (typeof document === 'string') {
    return document.includes(`://${maskDots}`) ||
      [...document.matchAll(urlInText)].some(([, , url]) => containsMask(url))
  }
  let isFound = false
  mapTargets(document, '', '', (url) => {
    isFound ||= containsMask(url)
    return url
  })
  return isFound
}

/**
 * Returns a function that tells whether dots at a path of a server's config, such as `openapi.schema.info.title`, are
 * part of a text for people, and not a mask, since no secrets are masked there.
 */
export function createTextCheck (
  { description, openapi }: Readonly<Record<string, unknown>>
): (path: string) => boolean {
  const isDocumentText = isObject(openapi) && !hasMaskedUrl(openapi.schema)
  const isDescriptionText = typeof description === 'string' && !isAbsoluteUrl(description)
  return (path) => {
    if (path === 'description') return isDescriptionText
    const [member = '', within] = path.split('.', 2)
    return openMembers.has(member) || (isDocumentText && member === 'openapi' && within === 'schema')
  }
}

/** Masks one member of a config. @param parent the name of the enclosing member; empty at the top */
function maskMember (key: string, value: unknown, parent: string, maskSecret: MaskSecret): unknown {
  if (key === 'schema' && parent === 'openapi') return maskOpenApi(value, maskSecret)
  if (secretMaps.has(key) && typeof value === 'object') return maskAll(value, maskSecret)
  if (Array.isArray(value)) {
    if (key === 'args') return maskArgs(value, maskSecret)
    return value.map((each) => maskMember(key, each, parent, maskSecret))
  }
  if (isObject(value)) return maskMembers(value, key, maskSecret)
  if (typeof value !== 'string') return value
  if (urlName.test(key)) return maskUrl(value, maskSecret)
  // `apiKey: {name, in, value}`: `value` is secret if its parent is. `security` describes an API key, too.
  const owner = parent === 'security' ? 'apiKey' : parent
  const name = key === 'value' ? owner : key
  if (secretNamePattern.test(name) && !aboutSecrets.test(name)) return maskSecret(value, name)
  return isAbsoluteUrl(value) ? maskUrl(value, maskSecret) : value
}

/**
 * Masks all texts and numbers in a value.
 * @param hint the hint for `maskSecret`; in an object, it is the member's name
 */
export function maskAll (value: unknown, maskSecret: MaskSecret = mask, hint = ''): unknown {
  if (Array.isArray(value)) return value.map((each) => maskAll(each, maskSecret, hint))
  if (isObject(value)) {
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, maskAll(each, maskSecret, key)]))
  }
  return typeof value === 'string' || typeof value === 'number' ? maskSecret(String(value), hint) : value
}
