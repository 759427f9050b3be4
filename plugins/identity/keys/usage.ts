import type { Change, Snapshot } from '../../../db/store.ts'
import type { BearerKey } from '../../../schemas/settings.ts'
import { errors } from '../../base/errors/index.ts'
import { type Settings, withHashedToken } from '../../settings/index.ts'

/** The times of last use of keys, kept in memory until `write` stores them. */
export class KeyUsage {
  readonly #settings: Settings
  /** The time of last use by key id, in ms since the epoch; only times that are not stored yet. */
  readonly #used = new Map<string, number>()

  constructor (settings: Settings) {
    this.#settings = settings
  }

  /** Records that a key was used now. Runs on every call. */
  recordUse ({ id }: BearerKey): void {
    this.#used.set(id, Date.now())
  }

  /** Returns the time of last use in ISO 8601; undefined if no use is known. */
  lastUseOf (key: BearerKey): string | undefined {
    const used = this.#used.get(key.id)
    return used === undefined || isNewer(key, used) ? key.lastUsedAt : new Date(used).toISOString()
  }

  /** Stores the new times in one commit. If that fails, they stay in memory for the next attempt. */
  async write (): Promise<void> {
    if (this.#used.size === 0) return
    const used = [...this.#used]
    await this.#settings.change(({ keys }) => changesOf(keys, used))
    for (const [id, at] of used) if (this.#used.get(id) === at) this.#used.delete(id)
  }
}

/** Whether the stored time is newer: another replica may have recorded a later use. */
const isNewer = ({ lastUsedAt }: BearerKey, used: number): boolean =>
  lastUsedAt !== undefined && Date.parse(lastUsedAt) >= used

const changesOf = (keys: Snapshot['keys'], used: ReadonlyArray<readonly [id: string, at: number]>): Change[] =>
  used.flatMap(([id, at]): Change[] => {
    const key = keys.get(id)
    if (!key || isNewer(key, at)) return []
    return [{
      entity: 'bearerKeys',
      key: id,
      value: {
        ...withHashedToken(key),
        lastUsedAt: new Date(at).toISOString()
      }
    }]
  })

/**
 * Returns the time at which a key expires, in ms since the epoch; Infinity if it never expires. An invalid date in a
 * settings file makes the key expired.
 */
export function keyExpiryOf ({ expiresAt }: BearerKey): number {
  if (expiresAt === undefined) return Infinity
  const time = Date.parse(expiresAt)
  return Number.isNaN(time) ? 0 : time
}

/** Converts a date to its stored form. @param text an ISO 8601 date and time with a time zone @throws InvalidInput */
export function toExpiry (text: string): string {
  const isDate =
    /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/.test(text) && !Number.isNaN(Date.parse(text))
  if (!isDate) {
    throw new errors.InvalidInput(
      '"expiresAt" must be a date and time with a time zone, such as "2030-01-31T12:00:00Z"'
    )
  }
  return new Date(text).toISOString()
}

/** The list members of a key's scope. */
type ScopeList = 'allowedServers' | 'allowedGroups'

/**
 * Returns the changes that remove deleted servers or groups from the scopes of keys. Otherwise a key would give access
 * to a new server or group of the same name.
 */
export const removeFromKeyScopes = (snapshot: Snapshot, list: ScopeList, names: readonly string[]): Change[] =>
  mapKeyScopes(snapshot, list, names, (listed) => listed.filter((name) => !names.includes(name)))

/**
 * Returns the changes that rename a server or group in the scopes of keys. Otherwise keys would give access to a server
 * or group created later with the former name.
 */
export const renameInKeyScopes = (snapshot: Snapshot, list: ScopeList, name: string, newName: string): Change[] =>
  mapKeyScopes(snapshot, list, [name], (listed) => [...new Set(listed.map((each) => each === name ? newName : each))])

/** Changes the list of every key that contains one of the names. */
function mapKeyScopes (
  { keys }: Snapshot, list: ScopeList, names: readonly string[], change: (listed: readonly string[]) => string[]
): Change[] {
  return [...keys.values()].flatMap((key): Change[] => {
    const listed = key[list]
    if (!listed?.some((name) => names.includes(name))) return []
    const value: BearerKey = { ...withHashedToken(key), [list]: change(listed) }
    return [{ entity: 'bearerKeys', key: key.id, value }]
  })
}
