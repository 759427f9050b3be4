import type { Vault } from '../../../db/store.ts'
import { pushTo } from '../../../protocol/grouping.ts'
import { isObject } from '../../../protocol/json.ts'
import { containsMask, maskUrl } from './mask.ts'
import { maskAll, maskConfig } from './mask-config.ts'
import { maskedParts, type MaskedPart } from './masked-parts.ts'
import { openKeyRing, type KeyRing, type KeyRingOptions } from './key-ring.ts'
import { isKeyMissing, needsResealing, seal, unseal } from './seal.ts'
import { isAbsoluteUrl } from './mask-tokens.ts'

/**
 * Replaces the secrets in a value by masks, and encrypts them. Secrets are the values that `maskConfig` masks and, if
 * plain members are listed, all other members.
 */
export class SealedVault implements Vault {
  readonly #ring: KeyRing

  constructor (ring: KeyRing) {
    this.#ring = ring
  }

  encryptSecrets <Value>(
    value: Value, place: string, plain?: ReadonlySet<string>
  ): { value: Value, sealed: string | null } {
    if (!isObject(value)) return { value, sealed: null }
    const shown = plain === undefined ? maskConfig(value) : maskAllExcept(plain, value, maskConfig(value))
    const secrets = [...maskedParts(value, shown)]
    if (secrets.length === 0) return { value, sealed: null }
    return { value: shown as Value, sealed: seal(this.#ring, JSON.stringify(secrets), place) }
  }

  /**
   * Replaces each mask by the secret that it stands for. Edits of the value take precedence: another value in the place
   * of a mask is kept, even if it contains another mask; a secret whose path no longer exists is dropped.
   */
  decryptSecrets <Value>(value: Value, sealed: string | null, place: string): Value {
    if (sealed === null) return value
    return restore(value, JSON.parse(unseal(this.#ring, sealed, place)) as MaskedPart[], 0) as Value
  }

  findMasks (value: unknown): string[] {
    return isObject(value) ? maskPaths(value, maskConfig(value), '') : []
  }

  isSealedWithFormerKey (sealed: string): boolean {
    return needsResealing(this.#ring, sealed)
  }

  isLocked (sealed: string): boolean {
    return isKeyMissing(this.#ring, sealed)
  }
}

/**
 * Creates a vault. If there is no key yet, the first secret creates the key file.
 * @throws the errors of `openKeyRing`
 */
export const openVault = async (options: KeyRingOptions): Promise<Vault> => new SealedVault(await openKeyRing(options))

/**
 * Masks all members that are not listed as plain.
 * @param plain paths of plain members, separated by dots
 * @param shown the members as masked for display
 */
function maskAllExcept (
  plain: ReadonlySet<string>,
  members: Readonly<Record<string, unknown>>,
  shown: Readonly<Record<string, unknown>>,
  path = ''
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(members).map(([key, value]) => {
      const place = path === '' ? key : `${path}.${key}`
      // A nested plain member is a whole document, which `maskConfig` has masked.
      if (plain.has(place)) return [key, path === '' ? maskAddresses(value, shown[key]) : shown[key]]
      const inner = shown[key]
      if (isObject(value) && isObject(inner)) return [key, maskAllExcept(plain, value, inner, place)]
      return [key, key === 'url' && typeof value === 'string' && isPlainAddress(value) ? value : maskAll(value)]
    })
  )
}

/** Masks the secrets that `shown` masks, and each URL that may contain a secret. */
function maskAddresses (value: unknown, shown: unknown): unknown {
  if (typeof value === 'string') {
    return value === shown && isAbsoluteUrl(value) && !isPlainAddress(value) ? maskAll(value) : shown
  }
  if (!isObject(value) || !isObject(shown)) return shown
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, maskAddresses(each, shown[key])]))
}

/** Whether a URL has no user, no query values, and no path segment that looks like a token. */
function isPlainAddress (url: string): boolean {
  const segments = url.split('/').slice(3)
  return maskUrl(url) === url && segments.every((segment) => segment.length < 16 || /^[a-z.-]+$/i.test(segment))
}

/** Returns the paths at which a value contains a mask instead of a secret. */
function maskPaths (value: unknown, shown: unknown, path: string): string[] {
  if (containsMask(value)) return containsMask(shown) ? [path] : []
  // Without secrets, both are the same value.
  if (value === shown || typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, each]) =>
    maskPaths(each, (shown as Record<string, unknown>)[key], path === '' ? key : `${path}.${key}`)
  )
}

/**
 * Copies a value with its secrets restored. Object members without secrets are not copied.
 * @param depth the nesting depth of the value, which is the index of the next element in the secrets' paths
 */
function restore (value: unknown, secrets: readonly MaskedPart[], depth: number): unknown {
  const inside = new Map<string | number, MaskedPart[]>()
  for (const each of secrets) {
    const [path, secret, shown] = each
    const key = path[depth]
    if (key === undefined) return value === shown ? secret : value
    pushTo(inside, key, each)
  }
  if (Array.isArray(value)) return value.map((each: unknown, at) => restore(each, inside.get(at) ?? [], depth + 1))
  if (!isObject(value)) return value
  const copy: Record<string, unknown> = { ...value }
  // `hasOwn`: a member `__proto__` must not change the prototype.
  for (const [key, some] of inside) if (Object.hasOwn(copy, key)) copy[key] = restore(copy[key], some, depth + 1)
  return copy
}
