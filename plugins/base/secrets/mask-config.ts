import { isObject } from '../../../protocol/json.ts'
import { isAbsoluteUrl, type MaskSecret } from './tokens.ts'
import { mask, secretName, maskUrl, maskUserInfo } from './mask.ts'
import { maskArgs } from './mask-args.ts'

/** Names of members that describe a secret but are none: the name of a header, an authentication method, a hash. */
const aboutSecrets = /(name|type|method|scheme|hash|mask)$/i

/** Names of members that contain an address although they match `secretName`: `tokenUrl`, `authorizationEndpoint`. */
const addressName = /(url|uri|endpoint)$/i

/** Members all of whose values are secrets, at any depth. */
const secretMaps = new Set(['env', 'headers'])

/** Members without secrets: an admin's overrides of items, whose keys are the servers' names, and texts for people. */
const openMembers = new Set(['tools', 'prompts', 'resources', 'skills', 'userVariables'])

/** Masks a server's config, or the system configuration, for display to its managers. */
export const maskConfig = (
  config: Readonly<Record<string, unknown>>, cover: MaskSecret = mask
): Record<string, unknown> =>
  maskMembers(config, '', cover)

/** @param parent the name of the enclosing member; empty at the top */
function maskMembers (
  members: Readonly<Record<string, unknown>>, parent: string, cover: MaskSecret
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(members).map(([key, value]) =>
      [key, parent === '' && openMembers.has(key) ? value : maskMember(key, value, parent, cover)])
  )
}

/** Cache of masked OpenAPI documents, by document. */
const maskedDescriptions = new WeakMap<object, unknown>()

/**
 * Masks an OpenAPI document, or its text: its addresses may contain credentials, the rest is not secret. Documents are
 * large and never changed in place, so the result is cached.
 */
function maskDescription (document: unknown, cover: MaskSecret): unknown {
  if (typeof document === 'string') return maskText(document, cover)
  if (typeof document !== 'object' || document === null) return document
  if (cover !== mask) return maskTargets(document, '', '', cover)
  if (!maskedDescriptions.has(document)) maskedDescriptions.set(document, maskTargets(document, '', '', mask))
  return maskedDescriptions.get(document)
}

/** Masks the addresses in a document to which calls and credentials are sent. Parts without secrets are shared. */
function maskTargets (value: unknown, key: string, parent: string, cover: MaskSecret): unknown {
  if (typeof value === 'string') {
    const isTarget =
      addressMember.test(key) || (key === 'url' && parent === 'servers') || (key === 'host' && parent === '')
    return isTarget ? maskUrl(value, cover) : value
  }
  if (typeof value !== 'object' || value === null) return value
  // Copied only if something changed: a document may have 100,000 values.
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

/** Masks a document given as JSON or YAML text, without parsing it; userinfo is masked in every address. */
const maskText = (text: string, cover: MaskSecret): string =>
  text
    .replace(addressInText,
      (whole, name: string, address: string) => (/[?@#]/.test(address) ? `${name}${maskUrl(address, cover)}` : whole))
    .replace(/(:\/\/)([^\s/?#"']*)@/g,
      (_whole, head: string, userinfo: string) => `${head}${maskUserInfo(userinfo, cover)}@`)

/** Masks one member of a config. @param parent the name of the enclosing member; empty at the top */
function maskMember (key: string, value: unknown, parent: string, cover: MaskSecret): unknown {
  if (key === 'schema' && parent === 'openapi') return maskDescription(value, cover)
  if (secretMaps.has(key) && typeof value === 'object') return maskAll(value, cover)
  if (Array.isArray(value)) {
    return key === 'args' ? maskArgs(value, cover) : value.map((each) => maskMember(key, each, parent, cover))
  }
  if (isObject(value)) return maskMembers(value, key, cover)
  if (typeof value !== 'string') return value
  if (addressName.test(key)) return maskUrl(value, cover)
  // `apiKey: {name, in, value}`, like OpenAPI's security schemes.
  const owner = parent === 'security' ? 'apiKey' : parent
  const name = key === 'value' ? owner : key
  if (secretName.test(name) && !aboutSecrets.test(name)) return cover(value, name)
  return isAbsoluteUrl(value) ? maskUrl(value, cover) : value
}

/** Masks all texts and numbers within a value. Booleans are not secret. */
export function maskAll (value: unknown, cover: MaskSecret = mask, hint = ''): unknown {
  if (Array.isArray(value)) return value.map((each) => maskAll(each, cover, hint))
  if (isObject(value)) {
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, maskAll(each, cover, key)]))
  }
  return typeof value === 'string' || typeof value === 'number' ? cover(String(value), hint) : value
}
