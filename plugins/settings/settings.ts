import { EventEmitter } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { waitAtMost } from '../../protocol/wait-at-most.ts'
import {
  ConflictError, InvalidChangeError, StorageError, type Change, type Snapshot, type Store
} from '../../db/store.ts'
import { errors, toStorageHttpError } from '../base/errors/index.ts'
import { toAuthor, type Author } from './access/author.ts'
import type { Principal } from './access/view.ts'
import { countValues } from '../base/body/index.ts'
import { Semaphore, ShareError, Shares, TokenBucket, baseLimits } from '../base/limits/index.ts'
import { OnDemandStoreRefresher } from './store-refresher.ts'
import { createTokenHashChanges } from './hashed-key.ts'
import { settingsLimits } from './limits.ts'

/** A commit of this process, as the event `committed` reports it. */
export interface CommitEvent {
  /** The author of the commit; undefined for the gateway itself. */
  by: Author | undefined
  changes: readonly Change[]
  former: Snapshot
  next: Snapshot
}

type MapSnapshot = (snapshot: Snapshot) => Snapshot

/** Max retries of a change that conflicts with another writer's commit. */
const maxRetries = 20
/** Interval at which the health of the store is checked, in ms. */
const healthInterval = 1_000
/** A change with more values than this yields to the event loop between its steps. */
const manyValues = 2_000

/**
 * The settings: read from a snapshot in memory, changed by commits, which are durable when `change` resolves. Events:
 * `changed` for every new snapshot; `committed` for each commit of this process; `edited` for changes from outside this
 * process (an edit of the settings file, or a change by another replica); `outdated` when the gateway begins to refuse
 * credentials, because the shared store has been unavailable for too long.
 */
export class Settings extends EventEmitter<{
  changed: [next: Snapshot, former: Snapshot]
  committed: [CommitEvent]
  edited: [next: Snapshot, former: Snapshot]
  outdated: [reason: string]
}> {
  readonly #store: Store
  readonly #readonly: boolean
  readonly #unsubscribe: () => void
  readonly #lookUps: OnDemandStoreRefresher
  readonly #turns = new Semaphore({ places: 1 })
  readonly #waiting = new Shares(settingsLimits.changes, 'changes of the settings')
  readonly #rate = new TokenBucket(settingsLimits.userChanges, { maxKeys: settingsLimits.userChanges.owners })
  readonly #changing = new Set<Promise<unknown>>()
  readonly #mapSnapshot: MapSnapshot
  readonly #healthTimer: NodeJS.Timeout
  #current: Snapshot
  /** The time since which the store has been unavailable, in ms since the epoch; undefined if it is available. */
  #awaySince: number | undefined
  #wasOutdated = false

  /**
   * Loads the settings.
   * @param readonly whether READONLY is set: `storeProblem` then ignores whether the store can be written
   * @param mapSnapshot maps each stored snapshot to the snapshot that is served, for example to mark servers that may
   *   not be started now
   */
  static async open (
    store: Store, readonly = false, mapSnapshot: MapSnapshot = (snapshot) => snapshot
  ): Promise<Settings> {
    return new Settings(store, await store.load(), readonly, mapSnapshot)
  }

  private constructor (store: Store, current: Snapshot, readonly: boolean, mapSnapshot: MapSnapshot) {
    super()
    this.setMaxListeners(0)
    this.#store = store
    this.#lookUps = new OnDemandStoreRefresher(store)
    this.#readonly = readonly
    this.#mapSnapshot = mapSnapshot
    this.#current = mapSnapshot(current)
    this.#healthTimer = setInterval(() => { this.#checkStoreHealth() }, healthInterval).unref()
    this.#unsubscribe = store.onChange((snapshot) => {
      const former = this.#current
      if (this.#adopt(snapshot)) this.emit('edited', this.#current, former)
    })
  }

  get current (): Snapshot { return this.#current }

  /** Returns the current settings with some members replaced. Servers that may then not be started are marked. */
  preview (members: Partial<Snapshot>): Snapshot { return this.#mapSnapshot({ ...this.#current, ...members }) }

  /** The reason why the store cannot be read or written now; undefined if it can. */
  get storeProblem (): string | undefined { return this.#store.health(this.#readonly) }

  /** The full reason why an edit of the settings on disk is ignored. For admins only, since it may contain paths. */
  get editProblem (): string | undefined { return this.#store.editProblem?.() }

  /**
   * The reason why the store is unavailable, once that has lasted for `settingsLimits.storageAway`; undefined if it is
   * available, or has been unavailable for less time.
   */
  get outageReason (): string | undefined {
    this.#checkStoreHealth()
    return this.#isTooLongAway ? this.storeProblem : undefined
  }

  /**
   * Whether the store shared with other replicas has been unavailable for so long that credentials may have been
   * revoked without this replica knowing.
   */
  get isOutdated (): boolean { return this.#store.refresh !== undefined && this.outageReason !== undefined }

  #checkStoreHealth (): void {
    const { storeProblem: problem } = this
    this.#awaySince = problem === undefined ? undefined : this.#awaySince ?? Date.now()
    const isOutdated = this.#store.refresh !== undefined && this.#isTooLongAway
    if (isOutdated && !this.#wasOutdated && problem !== undefined) this.emit('outdated', problem)
    this.#wasOutdated = isOutdated
  }

  get #isTooLongAway (): boolean {
    return this.#awaySince !== undefined && Date.now() - this.#awaySince >= settingsLimits.storageAway
  }

  /**
   * Checks the store once for a change by another replica, for a caller that refers to something unknown here.
   * Afterwards `current` is a new snapshot, or still the same one.
   * @returns undefined if no look-up is made
   * @throws DataAway (as a rejection) while a store shared with other replicas is unavailable, since it may contain
   *   what is unknown here
   */
  refreshFromStore (): Promise<void> | undefined {
    const looking = this.#isAway ? Promise.resolve(false) : this.#lookUps.refresh()
    return looking?.then((hasAnswered) => {
      if (!hasAnswered || this.#isAway) throw new errors.DataAway()
    })
  }

  /** Whether a store shared with other replicas cannot be read now: it may contain newer settings. */
  get #isAway (): boolean { return this.#store.refresh !== undefined && this.#store.health(true) !== undefined }

  /**
   * Changes the settings.
   * @param work returns the changes to the newest snapshot, or throws to reject the request; it runs again after a
   *   conflict with another writer
   * @param by the principal that makes the request, whose rights are checked against each snapshot passed to `work`; or
   *   the name of a user whose rights the caller has checked; undefined for the gateway itself
   * @returns the snapshot with the changes
   * @throws Unauthorized, Forbidden, ChangedMeanwhile, EditedOnDisk, InvalidChange, StorageFull, DiskFailing,
   *   StorageAway, ShareError
   */
  async change (work: (snapshot: Snapshot) => readonly Change[], by?: Principal | string): Promise<Snapshot> {
    // The gateway's own changes are few and must not be refused, so no quota applies to them.
    const owner = by === undefined ? undefined : accountOf(by)
    if (typeof by === 'object') this.#charge(by, settingsLimits.userChanges.each)
    const leave = owner === undefined ? () => {} : this.#waiting.take(owner)
    const changing = this.#inTurn(owner ?? '', async () => await this.#change(work, by)).finally(leave)
    this.#changing.add(changing)
    try {
      return await changing
    } finally {
      this.#changing.delete(changing)
    }
  }

  /**
   * Charges a change larger than `baseLimits.steppedBody` to the principal's rate limit, since storing it delays all
   * other writers. Changes by admins are not charged.
   * @param size the size of the submitted or stored value, in characters
   * @throws ShareError when the principal exceeds the limit
   */
  chargeLargeChange (principal: Principal, size: number): void {
    if (size > baseLimits.steppedBody) this.#charge(principal, size)
  }

  /** Charges a principal's rate limit, unless the principal is an admin. @throws ShareError if it is exceeded */
  #charge (principal: Principal, size: number): void {
    if (principal.isAdmin || this.#rate.take(accountOf(principal), size)) return
    throw new ShareError('You have exceeded the limit of changes for one user; try again in a minute', true)
  }

  /** Runs changes one at a time, so that conflicts arise only with other processes. Owners take turns. */
  async #inTurn (owner: string, work: () => Promise<Snapshot>): Promise<Snapshot> {
    const release = await this.#turns.take(owner)
    try {
      return await work()
    } finally {
      release()
    }
  }

  async #change (
    work: (snapshot: Snapshot) => readonly Change[], by: Principal | string | undefined
  ): Promise<Snapshot> {
    const author = typeof by === 'string' ? { username: by } : by?.username === undefined ? undefined : toAuthor(by)
    for (let left = maxRetries; ; left--) {
      const base = this.#current
      if (typeof by === 'object') {
        assertStillValid(base, by)
        by.checkPrecondition?.()
      }
      const requested = work(base)
      if (requested.length === 0) return base
      // The token hashes come first, since a requested change may touch the same keys: renaming a server updates the
      // scopes of keys.
      const changes = [...createTokenHashChanges(base, requested), ...requested]
      await pauseAfter(requested)
      try {
        const stored = await this.#store.commit(changes, base.version)
        this.#adopt(stored)
        const next = this.#current.version === stored.version ? this.#current : this.#mapSnapshot(stored)
        await pauseAfter(requested)
        this.emit('committed', { by: author, changes: requested, former: base, next })
        return next
      } catch (error) {
        if (error instanceof ConflictError) {
          if (left > 0 && this.#current !== base) continue
          if (error.isFileEdit) throw new errors.EditedOnDisk(error.message)
          if (left === 0) throw new errors.StorageAway('too many changes at once')
          await new Promise((resolve) => { setImmediate(resolve) })
          continue
        }
        throw toHttpError(error)
      }
    }
  }

  /** Waits until all changes in progress have ended. After `ms`, aborts those that wait for the store, and returns. */
  async drain (ms: number): Promise<void> {
    await waitAtMost(ms, this.#waitForChanges(), () => { this.#store.abortPending?.() })
  }

  async #waitForChanges (): Promise<void> {
    while (this.#changing.size > 0) await Promise.allSettled(this.#changing)
  }

  /** Closes the store. */
  async close (): Promise<void> {
    clearInterval(this.#healthTimer)
    this.#unsubscribe()
    await this.#store.close()
  }

  /** Makes a snapshot the current one if its version is higher. @returns whether it did */
  #adopt (stored: Snapshot): boolean {
    if (stored.version <= this.#current.version) return false
    const former = this.#current
    const next = this.#current = this.#mapSnapshot(stored)
    this.emit('changed', next, former)
    return true
  }
}

/**
 * Yields to the event loop between the steps of a change with many values, since each step reads all of the values.
 * `setImmediate` would not do: scheduled from an I/O callback, it runs before the event loop polls its sockets again.
 */
async function pauseAfter (changes: readonly Change[]): Promise<void> {
  if (countValues(changes, manyValues) > manyValues) await sleep(0)
}

/** The account that a change is charged to: the user, including the user's keys, or a principal without a user. */
const accountOf = (by: Principal | string): string => typeof by === 'string' ? by : by.username ?? by.key

function toHttpError (error: unknown): unknown {
  if (error instanceof InvalidChangeError) return new errors.InvalidChange(error.message)
  return error instanceof StorageError ? toStorageHttpError(error, new errors.StorageAway(error.message)) : error
}

/**
 * Checks that a principal's credential and rights are still valid in a snapshot that may be newer than the one at the
 * start of the request.
 * @throws Unauthorized, Forbidden
 */
function assertStillValid (snapshot: Snapshot, { inSnapshot, isAdmin }: Principal): void {
  if (inSnapshot === undefined) return
  const now = inSnapshot(snapshot)
  if (!now) throw new errors.Unauthorized('This credential is no longer valid, and nothing was changed')
  if (isAdmin && !now.isAdmin) throw new errors.Forbidden('You are no longer an admin, and nothing was changed')
}
