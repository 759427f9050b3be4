import { recordCollections, tombstoneRetention, type RecordEntry, type Records, type StoredRecord } from '../records.ts'

const { userValues } = recordCollections

/** Identifies a user's values for a server. */
export interface UserValueKey {
  readonly server: string
  readonly user: string
  /** An id of the account; a later account with the same username has another one. */
  readonly account: string
  /** Identifies the address or command that the values may be sent to; contains no colons. */
  readonly target: string
}

/** The stored values of one user for one server. Each change gives them another `version`. */
export interface StoredUserValues extends UserValueKey {
  readonly version: string
  /** The values by the names of the variables; empty if the user has removed them. */
  readonly values: Readonly<Record<string, string>>
  /** In ms since the epoch. */
  readonly updatedAt: number
}

/** The values that users provide for servers, as encrypted records. Values that cannot be decrypted count as absent. */
export class UserValueRecords {
  readonly #records: Records

  constructor (records: Records) {
    this.#records = records
  }

  async find (server: string, user: string): Promise<StoredUserValues | undefined> {
    const found = await this.#records.find(userValues, keyOf(server, user))
    return found && toStored(found)
  }

  /** Lists the values of all users for a server. */
  async list (server: string): Promise<StoredUserValues[]> {
    const found = await this.#records.list(userValues, { labels: [serverLabel(server)] })
    return found.flatMap((each) => toStored(each) ?? [])
  }

  /**
   * Replaces the values of this version. If several callers, on any replica, use the same version, exactly one
   * succeeds.
   * @param version undefined if there are none
   */
  async swap (
    key: UserValueKey, version: string | undefined, values: Readonly<Record<string, string>>
  ): Promise<boolean> {
    const entry = toEntry(key, values)
    if (await this.#records.swap(userValues, version, entry)) return true
    if (version !== undefined) return false
    const locked = await this.#records.find(userValues, entry.key)
    return locked?.isLocked === true && await this.#records.swap(userValues, locked.version, entry)
  }

  /** Deletes the values of a user for a server. For an hour, `listChangedWithin` lists this on every replica. */
  async forget (key: UserValueKey): Promise<void> {
    // An entry without values replaces them, and expires.
    await this.#records.put(userValues, [{ ...toEntry(key, {}), expiresIn: tombstoneRetention }])
  }

  /** Removes the values for a target of a server, or those of an account. */
  async removeAll (filter: Pick<UserValueKey, 'server' | 'target'> | Pick<UserValueKey, 'account'>): Promise<void> {
    const label = 'server' in filter ? targetLabel(filter.server, filter.target) : accountLabel(filter.account)
    await this.#records.remove(userValues, { labels: [label] })
  }

  /** Lists the values that any replica stored or removed within the last `time` ms. */
  async listChangedWithin (time: number): Promise<Array<Pick<StoredUserValues, 'server' | 'user' | 'version'>>> {
    const changed = await this.#records.list(userValues, { changedWithin: time }, true)
    return changed.map((each) => ({ ...toKey(each), version: each.version }))
  }

  /** Removes the values for which `isCurrent` returns false, since their target or account no longer exists. */
  async sweep (isCurrent: (key: UserValueKey) => boolean): Promise<void> {
    for (const entry of await this.#records.list(userValues, {}, true)) {
      const key = toKey(entry)
      if (isSettled(entry) && !isCurrent(key)) await this.#records.remove(userValues, keyOf(key.server, key.user))
    }
  }
}

const keyOf = (server: string, user: string): string => JSON.stringify([server, user])
const serverLabel = (server: string): string => `server:${server}`
const accountLabel = (account: string): string => `account:${account}`
const targetLabel = (server: string, target: string): string => `target:${target}:${server}`
/** The labels of an entry, in the order in which `toKey` reads them. */
const labelsOf = ({ server, user, account, target }: UserValueKey): string[] =>
  [serverLabel(server), `user:${user}`, accountLabel(account), targetLabel(server, target)]

function toKey ({ labels: [server = '', user = '', account = '', target = ''] }: StoredRecord): UserValueKey {
  const rest = (label: string): string => label.slice(label.indexOf(':') + 1)
  return { server: rest(server), user: rest(user), account: rest(account), target: target.split(':')[1] ?? '' }
}

/** Whether an entry is so old that the settings of this replica must contain its server and account, if they exist. */
const isSettled = ({ age }: StoredRecord): boolean => age > 60_000

const toEntry = (key: UserValueKey, values: Readonly<Record<string, string>>): RecordEntry =>
  ({ key: keyOf(key.server, key.user), value: values, owner: key.user, labels: labelsOf(key) })

function toStored (found: StoredRecord): StoredUserValues | undefined {
  if (found.isLocked) return undefined
  const { version, age, value } = found
  return { ...toKey(found), version, values: value as Record<string, string>, updatedAt: Date.now() - age }
}
