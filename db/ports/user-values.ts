import { recordCollections, tombstoneRetention, type RecordEntry, RecordPort, type StoredRecord } from '../records.ts'

const { userValues } = recordCollections

/** Identifies a user's values for a server. */
export interface UserValueKey {
  readonly server: string
  readonly user: string
  /** The id of the user's account; a later account with the same username has another one. */
  readonly account: string
  /** A hash of the address or command to which the values may be passed; contains no colons. */
  readonly target: string
}

/** The stored values of one user for one server. `version`: an id that changes with each write. */
export interface StoredUserValues extends UserValueKey {
  readonly version: string
  /** The values by the names of the variables; empty if the user has removed them. */
  readonly values: Readonly<Record<string, string>>
  /** In ms since 1970. */
  readonly updatedAt: number
}

/** Stores the values that users provide for servers, as encrypted records. Undecryptable values count as absent. */
export class UserValueRecords extends RecordPort {
  async find (server: string, user: string): Promise<StoredUserValues | undefined> {
    const found = await this.records.find(userValues, keyOf(server, user))
    return found && toStored(found)
  }

  /** Lists the values of all users for a server. */
  async list (server: string): Promise<StoredUserValues[]> {
    const found = await this.records.list(userValues, { labels: [serverLabel(server)] })
    return found.flatMap((each) => toStored(each) ?? [])
  }

  /**
   * Stores the values of a user for a server if the stored values still have a given version. If several callers, on
   * any replica, name the same version, exactly one succeeds.
   * @param version the version of the values to replace; undefined if there are none, or they cannot be decrypted
   * @returns whether the values were stored
   */
  async swap (
    key: UserValueKey, version: string | undefined, values: Readonly<Record<string, string>>
  ): Promise<boolean> {
    const entry = toEntry(key, values)
    if (await this.records.swap(userValues, version, entry)) return true
    if (version !== undefined) return false
    const locked = await this.records.find(userValues, entry.key)
    return locked?.isLocked === true && await this.records.swap(userValues, locked.version, entry)
  }

  /** Removes the values of a user for a server. For an hour, `listChangedWithin` lists the removal on each replica. */
  async forget (key: UserValueKey): Promise<void> {
    // The values are replaced by an entry without values, which expires.
    await this.records.put(userValues, [{ ...toEntry(key, {}), expiresIn: tombstoneRetention }])
  }

  /**
   * Removes the values for a target of a server, or all values of an account; `listChangedWithin` does not list this.
   */
  async removeAll (filter: Pick<UserValueKey, 'server' | 'target'> | Pick<UserValueKey, 'account'>): Promise<void> {
    const label = 'server' in filter ? targetLabel(filter.server, filter.target) : accountLabel(filter.account)
    await this.records.remove(userValues, { labels: [label] })
  }

  /** Lists the values that any replica has stored with `swap`, or removed with `forget`, within the last `time` ms. */
  async listChangedWithin (time: number): Promise<Array<Pick<StoredUserValues, 'server' | 'user' | 'version'>>> {
    const changed = await this.records.list(userValues, { changedWithin: time }, true)
    return changed.map((each) => ({ ...toKey(each), version: each.version }))
  }

  /**
   * Removes values whose target or account no longer exists, except recently stored ones.
   * @param isCurrent returns whether target and account of the values still exist
   */
  async sweep (isCurrent: (key: UserValueKey) => boolean): Promise<void> {
    for (const entry of await this.records.list(userValues, {}, true)) {
      const key = toKey(entry)
      if (isSettled(entry) && !isCurrent(key)) await this.records.remove(userValues, keyOf(key.server, key.user))
    }
  }
}

const keyOf = (server: string, user: string): string => JSON.stringify([server, user])
const serverLabel = (server: string): string => `server:${server}`
const accountLabel = (account: string): string => `account:${account}`
const targetLabel = (server: string, target: string): string => `target:${target}:${server}`
/** Returns the labels of an entry, in the order in which `toKey` reads them. */
const labelsOf = ({ server, user, account, target }: UserValueKey): string[] =>
  [serverLabel(server), `user:${user}`, accountLabel(account), targetLabel(server, target)]

function toKey ({ labels: [server = '', user = '', account = '', target = ''] }: StoredRecord): UserValueKey {
  const rest = (label: string): string => label.slice(label.indexOf(':') + 1)
  return { server: rest(server), user: rest(user), account: rest(account), target: target.split(':')[1] ?? '' }
}

/** Whether an entry is old enough for this replica's settings to contain its server and account, if these exist. */
const isSettled = ({ age }: StoredRecord): boolean => age > 60_000

const toEntry = (key: UserValueKey, values: Readonly<Record<string, string>>): RecordEntry =>
  ({ key: keyOf(key.server, key.user), value: values, owner: key.user, labels: labelsOf(key) })

function toStored (found: StoredRecord): StoredUserValues | undefined {
  if (found.isLocked) return undefined
  const { version, age, value } = found
  return { ...toKey(found), version, values: value as Record<string, string>, updatedAt: Date.now() - age }
}
