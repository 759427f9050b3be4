import { randomUUID } from 'node:crypto'
import {
  recordCollections, tombstoneRetention, type RecordEntry, type Records, type RecordFilter, type StoredRecord
} from '../records.ts'

const { upstreamTokens, upstreamClaims, removedLogins } = recordCollections

/** A stored login at an upstream server. Each change gives it another `version`. */
interface StoredUpstreamLogin { readonly version: string, readonly value: unknown }
/** A change of a login at an upstream server. `version` is undefined if the login was removed. */
interface UpstreamLoginChange {
  readonly server: string, readonly holder: string, readonly version: string | undefined
}

/**
 * The gateway's logins at upstream servers: its tokens and client registrations at their authorization servers, as
 * encrypted records of plain JSON. Each belongs to one holder at one server; the caller chooses the names of holders. A
 * login that cannot be decrypted is treated as absent, so that its holder logs in again.
 */
export class UpstreamTokens {
  readonly #records: Records

  constructor (records: Records) {
    this.#records = records
  }

  async find (server: string, holder: string): Promise<StoredUpstreamLogin | undefined> {
    const found = await this.#records.find(upstreamTokens, keyOf(server, holder))
    return found === undefined || found.isLocked ? undefined : { version: found.version, value: found.value }
  }

  /**
   * Stores a value if the stored one still has that version. If several callers, on any replica, name the same version,
   * exactly one succeeds.
   * @param replaces the version that the new value replaces; `any` replaces every version; undefined replaces none, or
   *   only a value that cannot be decrypted
   * @returns the new version; undefined if another value was stored meanwhile
   */
  async swap (
    server: string,
    holder: string,
    replaces: { readonly version: string } | 'any' | undefined,
    value: unknown
  ): Promise<string | undefined> {
    const version = randomUUID()
    const entry: RecordEntry = {
      key: keyOf(server, holder), value, version, labels: [serverLabel(server), holderLabel(holder)]
    }
    if (replaces === 'any') {
      await this.#records.put(upstreamTokens, [entry])
      return version
    }
    if (await this.#records.swap(upstreamTokens, replaces?.version, entry)) return version
    if (replaces !== undefined) return undefined
    const locked = await this.#records.find(upstreamTokens, entry.key)
    return locked?.isLocked && await this.#records.swap(upstreamTokens, locked.version, entry) ? version : undefined
  }

  /**
   * Claims the right to replace a version. Exactly one caller, on any replica, gets it, until the value changes or a
   * time in ms has passed.
   * @returns false if another caller has the claim, or another value was stored meanwhile
   */
  async claim (server: string, holder: string, version: string, time: number): Promise<boolean> {
    const key = keyOf(server, holder)
    if ((await this.#records.find(upstreamTokens, key))?.version !== version) return false
    const claim = { key: `${version} ${key}`, value: null, expiresIn: time }
    return await this.#records.swap(upstreamClaims, undefined, claim)
  }

  /** Removes a value. @returns whether it existed */
  async remove (server: string, holder: string): Promise<boolean> {
    const isGone = await this.#records.remove(upstreamTokens, keyOf(server, holder)) > 0
    if (isGone) await this.#recordRemovals([{ labels: [serverLabel(server), holderLabel(holder)] }])
    return isGone
  }

  /** Removes all values of a server, or of a holder. */
  async removeAll (target: { readonly server: string } | { readonly holder: string }): Promise<void> {
    const label = 'server' in target ? serverLabel(target.server) : holderLabel(target.holder)
    const filter: RecordFilter = { labels: [label] }
    const gone = await this.#records.list(upstreamTokens, filter, true)
    await this.#records.remove(upstreamTokens, filter)
    await this.#recordRemovals(gone)
  }

  /** Lists the logins that were stored or removed within the last `time` ms (at most an hour), on any replica. */
  async listChangedWithin (time: number): Promise<UpstreamLoginChange[]> {
    const removed = await this.#records.list(removedLogins, { changedWithin: time }, true)
    const stored = await this.#records.list(upstreamTokens, { changedWithin: time }, true)
    const changes = [
      ...removed.map((entry) => toChange(entry, undefined)), ...stored.map((entry) => toChange(entry, entry.version))
    ]
    return [...new Map(changes.map((change) => [keyOf(change.server, change.holder), change])).values()]
  }

  /** Records that logins were removed, for `listChangedWithin` on every replica. */
  async #recordRemovals (removed: ReadonlyArray<Pick<StoredRecord, 'labels'>>): Promise<void> {
    const entries =
      removed.map(({ labels }) => ({ key: JSON.stringify(labels), value: null, labels, expiresIn: tombstoneRetention }))
    await this.#records.put(removedLogins, entries)
  }
}

const keyOf = (server: string, holder: string): string => JSON.stringify([server, holder])
const serverLabel = (server: string): string => `server:${server}`
const holderLabel = (holder: string): string => `holder:${holder}`

const toChange = (
  { labels: [server = '', holder = ''] }: Pick<StoredRecord, 'labels'>, version: string | undefined
): UpstreamLoginChange =>
  ({ server: server.slice(serverLabel('').length), holder: holder.slice(holderLabel('').length), version })
