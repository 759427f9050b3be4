import type { Vault } from '../../db/store.ts'
import { isObject } from '../../protocol/json.ts'
import { isAddress, isMask, maskAll, maskConfig, maskUrl } from './mask.ts'
import { openKeyRing, type KeyRing, type KeyRingOptions } from './ring.ts'
import { isOutdated, seal, unseal } from './seal.ts'

/** One secret: where it stands, what it is, and the mask that was left in its place. */
type Secret = readonly [path: ReadonlyArray<string | number>, value: unknown, shown: unknown]

/** Secrets sealed beside a value that shows masks in their place: of a value's members, those that `maskConfig` masks. */
export class SealedVault implements Vault {
  readonly #ring: KeyRing

  constructor (ring: KeyRing) {
    this.#ring = ring
  }

  hide <Value>(value: Value, place: string, plain?: ReadonlySet<string>): { value: Value, sealed: string | null } {
    if (!isObject(value)) return { value, sealed: null }
    const shown = plain === undefined ? maskConfig(value) : maskExcept(plain, value, maskConfig(value))
    const secrets: Secret[] = []
    collect(value, shown, [], secrets)
    if (secrets.length === 0) return { value, sealed: null }
    return { value: shown as Value, sealed: seal(this.#ring, JSON.stringify(secrets), place) }
  }

  /**
   * Puts each secret back where its mask still stands. Whoever edits the value by hand is believed: another value in a secret's
   * place stays as it is, also one with a mask in it, and a secret whose place is gone is dropped.
   */
  reveal <Value>(value: Value, sealed: string | null, place: string): Value {
    if (sealed === null) return value
    return restore(value, JSON.parse(unseal(this.#ring, sealed, place)) as Secret[], 0) as Value
  }

  masks (value: unknown): string[] {
    return isObject(value) ? masksIn(value, maskConfig(value), '') : []
  }

  outdated (sealed: string): boolean {
    return isOutdated(this.#ring, sealed)
  }
}

/** The vault on the keys at hand. It makes a key file at the first `hide` that has something to seal, and not before. @throws as `openKeyRing` */
export const openVault = async (options: KeyRingOptions): Promise<Vault> => new SealedVault(await openKeyRing(options))

/** Finds what differs between a value and what is shown of it. */
function collect (value: unknown, shown: unknown, path: Secret[0], found: Secret[]): void {
  if (value === shown) return
  if (Array.isArray(value) && Array.isArray(shown)) {
    value.forEach((each, at) => {
      collect(each, shown[at], [...path, at], found)
    })
  } else if (isObject(value) && isObject(shown)) {
    for (const [key, each] of Object.entries(value)) collect(each, shown[key], [...path, key], found)
  } else found.push([path, value, shown])
}

/** All that is not known to be plain is masked. @param shown the members as people are shown them */
function maskExcept (
  plain: ReadonlySet<string>,
  members: Readonly<Record<string, unknown>>,
  shown: Readonly<Record<string, unknown>>,
  path = ''
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(members).map(([key, value]) => {
      const place = path === '' ? key : `${path}.${key}`
      // A member of a member is a whole document, with addresses of its own.
      if (plain.has(place)) return [key, path === '' ? withoutAddresses(value, shown[key]) : shown[key]]
      const inner = shown[key]
      if (isObject(value) && isObject(inner)) return [key, maskExcept(plain, value, inner, place)]
      return [key, key === 'url' && typeof value === 'string' && opensNothing(value) ? value : maskAll(value)]
    })
  )
}

/** What people are shown, and yet without the addresses that hold more than a place. */
function withoutAddresses (value: unknown, shown: unknown): unknown {
  if (typeof value === 'string') return value === shown && isAddress(value) && !opensNothing(value) ? maskAll(value) : shown
  if (!isObject(value) || !isObject(shown)) return shown
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, withoutAddresses(each, shown[key])]))
}

/** Whether an address has no user, no values in its query, and nothing in its path that looks like a token. */
const opensNothing = (url: string): boolean =>
  maskUrl(url) === url &&
  url
    .split('/')
    .slice(3)
    .every((part) => part.length < 16 || /^[a-z.-]+$/i.test(part))

/** The places of a value whose secrets are masks already. */
function masksIn (value: unknown, shown: unknown, path: string): string[] {
  if (isMask(value)) return isMask(shown) ? [path] : []
  // What holds no secrets is shown as it is.
  if (value === shown || typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, each]) =>
    masksIn(each, (shown as Record<string, unknown>)[key], path === '' ? key : `${path}.${key}`)
  )
}

/** A copy with the secrets in it; what holds none is shared. @param depth how much of their paths led to this value */
function restore (value: unknown, secrets: readonly Secret[], depth: number): unknown {
  const inside = new Map<string | number, Secret[]>()
  for (const each of secrets) {
    const [path, secret, shown] = each
    const key = path[depth]
    if (key === undefined) return value === shown ? secret : value
    const siblings = inside.get(key)
    if (siblings) siblings.push(each)
    else inside.set(key, [each])
  }
  if (Array.isArray(value)) return value.map((each: unknown, at) => restore(each, inside.get(at) ?? [], depth + 1))
  if (!isObject(value)) return value
  const copy: Record<string, unknown> = { ...value }
  // Only members that are there: an own `__proto__` is then an ordinary one.
  for (const [key, some] of inside) if (Object.hasOwn(copy, key)) copy[key] = restore(copy[key], some, depth + 1)
  return copy
}
