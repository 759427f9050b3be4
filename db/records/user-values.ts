import type { StoredUserValues, UserValueKey, UserValueRecords } from '../ports/user-values.ts'
import { recordCollections, tombstoneRetention, type RecordEntry, type Records, type StoredRecord } from '../records.ts'

const { userValues } = recordCollections

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

/** Whether an entry is so old that its server and account must be known to this replica's settings. `age` is in ms. */
const isSettled = ({ age }: StoredRecord): boolean => age > 60_000

/** The values of users for servers, as records. */
export class RecordedUserValues implements UserValueRecords {
  readonly #records: Records

  constructor (records: Records) {
    this.#records = records
  }

  async find (server: string, user: string): Promise<StoredUserValues | undefined> {
    const found = await this.#records.find(userValues, keyOf(server, user))
    return found && toStored(found)
  }

  async list (server: string): Promise<StoredUserValues[]> {
    const found = await this.#records.list(userValues, { labels: [serverLabel(server)] })
    return found.flatMap((each) => toStored(each) ?? [])
  }

  async swap (
    key: UserValueKey, version: string | undefined, values: Readonly<Record<string, string>>
  ): Promise<boolean> {
    const entry = toEntry(key, values)
    if (await this.#records.swap(userValues, version, entry)) return true
    if (version !== undefined) return false
    const locked = await this.#records.find(userValues, entry.key)
    return locked?.isLocked === true && await this.#records.swap(userValues, locked.version, entry)
  }

  async forget (key: UserValueKey): Promise<void> {
    // The empty entry notifies the other replicas, and expires.
    await this.#records.put(userValues, [{ ...toEntry(key, {}), expiresIn: tombstoneRetention }])
  }

  async removeAll (which: Pick<UserValueKey, 'server' | 'target'> | Pick<UserValueKey, 'account'>): Promise<void> {
    const label = 'server' in which ? targetLabel(which.server, which.target) : accountLabel(which.account)
    await this.#records.remove(userValues, { labels: [label] })
  }

  async listChangedWithin (time: number): Promise<Array<Pick<StoredUserValues, 'server' | 'user' | 'version'>>> {
    const changed = await this.#records.list(userValues, { changedWithin: time }, true)
    return changed.map((each) => ({ ...toKey(each), version: each.version }))
  }

  async sweep (isCurrent: (key: UserValueKey) => boolean): Promise<void> {
    for (const entry of await this.#records.list(userValues, {}, true)) {
      const key = toKey(entry)
      if (isSettled(entry) && !isCurrent(key)) await this.#records.remove(userValues, keyOf(key.server, key.user))
    }
  }
}

const toEntry = (key: UserValueKey, values: Readonly<Record<string, string>>): RecordEntry =>
  ({ key: keyOf(key.server, key.user), value: values, owner: key.user, labels: labelsOf(key) })

function toStored (found: StoredRecord): StoredUserValues | undefined {
  if (found.isLocked) return undefined
  const { version, age, value } = found
  return { ...toKey(found), version, values: value as Record<string, string>, updatedAt: Date.now() - age }
}
