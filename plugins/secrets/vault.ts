import type { Vault } from '../../db/store.ts'
import { isObject } from '../../protocol/json.ts'
import { maskConfig } from './mask.ts'
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

  hide <Value>(value: Value, place: string): { value: Value, sealed: string | null } {
    if (!isObject(value)) return { value, sealed: null }
    const shown = maskConfig(value)
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

  outdated (sealed: string): boolean {
    return isOutdated(this.#ring, sealed)
  }
}

/** The vault on the keys at hand. It makes a key file at the first `hide` that has something to seal, and not before. @throws as `openKeyRing` */
export const openVault = async (options: KeyRingOptions): Promise<Vault> => new SealedVault(await openKeyRing(options))

/** Finds what differs between a value and what is shown of it. */
function collect (value: unknown, shown: unknown, path: Secret[0], found: Secret[]): void {
  if (value === shown) return
  if (Array.isArray(value) && Array.isArray(shown)) value.forEach((each, at) => { collect(each, shown[at], [...path, at], found) })
  else if (isObject(value) && isObject(shown)) for (const [key, each] of Object.entries(value)) collect(each, shown[key], [...path, key], found)
  else found.push([path, value, shown])
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
