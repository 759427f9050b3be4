import { randomUUID } from 'node:crypto'
import {
  recordCollections, tombstoneRetention, type RecordEntry, RecordPort, type RecordFilter, type StoredRecord
} from '../records.ts'

const { upstreamTokens, upstreamClaims, removedLogins } = recordCollections

/** A stored login at an upstream server. Each change gives it another `version`. */
interface StoredUpstreamLogin { readonly version: string, readonly value: unknown }
/** A change of a login at an upstream server. `version` is undefined if the login was removed. */
interface UpstreamLoginChange {
  readonly server: string, readonly holder: string, readonly version: string | undefined
}

/**
 * Stores the gateway's logins at upstream servers (tokens and client registrations) as encrypted records of plain JSON.
 * A login belongs to one holder at one server; the caller chooses the names of holders. A login that cannot be
 * decrypted is treated as absent, so that its holder logs in again.
 */
export class UpstreamTokens extends RecordPort {
  async find (server: string, holder: string): Promise<StoredUpstreamLogin | undefined> {
    const found = await this.records.find(upstreamTokens, keyOf(server, holder))
    return found === undefined || found.isLocked ? undefined : { version: found.version, value: found.value }
  }

  /**
   * Stores a login, if the currently stored one is what the caller expects. If several callers, on any replica, name
   * the same version, exactly one succeeds.
   * @param replaces the version of the login to replace; `any` replaces whatever is stored; undefined requires that
   *   none is stored, or only one that cannot be decrypted
   * @returns the new version; undefined if another login is stored, in which case nothing is changed
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
      await this.records.put(upstreamTokens, [entry])
      return version
    }
    if (await this.records.swap(upstreamTokens, replaces?.version, entry)) return version
    if (replaces !== undefined) return undefined
    const locked = await this.records.find(upstreamTokens, entry.key)
    return locked?.isLocked && await this.records.swap(upstreamTokens, locked.version, entry) ? version : undefined
  }

  /**
   * Claims the right to renew a login. Exactly one caller, on any replica, gets the claim for a version.
   * @param version the version of the login to renew
   * @param time the time after which another caller can claim the same version, in ms
   * @returns false if another caller has the claim, or the stored login has another version
   */
  async claim (server: string, holder: string, version: string, time: number): Promise<boolean> {
    if ((await this.records.find(upstreamTokens, keyOf(server, holder)))?.version !== version) return false
    const claim = { key: claimKeyOf(server, holder, version), value: null, expiresIn: time }
    return await this.records.swap(upstreamClaims, undefined, claim)
  }

  /** Gives back a claim, so that the renewal of this version can be tried again at once. */
  async releaseClaim (server: string, holder: string, version: string): Promise<void> {
    await this.records.remove(upstreamClaims, claimKeyOf(server, holder, version))
  }

  /** Removes the login of a holder at a server. @returns whether it existed */
  async remove (server: string, holder: string): Promise<boolean> {
    const isGone = await this.records.remove(upstreamTokens, keyOf(server, holder)) > 0
    if (isGone) await this.#recordRemovals([{ labels: [serverLabel(server), holderLabel(holder)] }])
    return isGone
  }

  /** Removes all logins at a server, or all logins of a holder. */
  async removeAll (target: { readonly server: string } | { readonly holder: string }): Promise<void> {
    const label = 'server' in target ? serverLabel(target.server) : holderLabel(target.holder)
    const filter: RecordFilter = { labels: [label] }
    const gone = await this.records.list(upstreamTokens, filter, true)
    await this.records.remove(upstreamTokens, filter)
    await this.#recordRemovals(gone)
  }

  /** Lists the logins that any replica has stored or removed within the last `time` ms (at most an hour). */
  async listChangedWithin (time: number): Promise<UpstreamLoginChange[]> {
    const removed = await this.records.list(removedLogins, { changedWithin: time }, true)
    const stored = await this.records.list(upstreamTokens, { changedWithin: time }, true)
    const changes = [
      ...removed.map((entry) => toChange(entry, undefined)), ...stored.map((entry) => toChange(entry, entry.version))
    ]
    return [...new Map(changes.map((change) => [keyOf(change.server, change.holder), change])).values()]
  }

  /** Records that logins were removed, so that `listChangedWithin` lists them on each replica. */
  async #recordRemovals (removed: ReadonlyArray<Pick<StoredRecord, 'labels'>>): Promise<void> {
    const entries =
      removed.map(({ labels }) => ({ key: JSON.stringify(labels), value: null, labels, expiresIn: tombstoneRetention }))
    await this.records.put(removedLogins, entries)
  }
}

const keyOf = (server: string, holder: string): string => JSON.stringify([server, holder])
const claimKeyOf = (server: string, holder: string, version: string): string => `${version} ${keyOf(server, holder)}`
const serverLabel = (server: string): string => `server:${server}`
const holderLabel = (holder: string): string => `holder:${holder}`

const toChange = (
  { labels: [server = '', holder = ''] }: Pick<StoredRecord, 'labels'>, version: string | undefined
): UpstreamLoginChange =>
  ({ server: server.slice(serverLabel('').length), holder: holder.slice(holderLabel('').length), version })
