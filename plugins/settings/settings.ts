import { EventEmitter } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { Conflict, Invalid, StorageError, type Change, type Snapshot, type Store } from '../../db/store.ts'
import { errors, storageFault } from '../base/errors/index.ts'
import { toAuthor, type Author } from './access/author.ts'
import type { Principal } from './access/view.ts'
import { countValues } from '../base/body/index.ts'
import { Semaphore, ShareError, Shares, TokenBucket, baseLimits } from '../base/limits/index.ts'
import { FreshLookUps } from './fresh-look-ups.ts'
import { withoutToken } from './hashed-key.ts'
import { settingsLimits } from './limits.ts'

/** One commit. */
export interface Committed {
  /** Who asked for it; undefined: the gateway itself. */
  by: Author | undefined
  changes: readonly Change[]
  former: Snapshot
  next: Snapshot
}

type View = (snapshot: Snapshot) => Snapshot

/** Max retries of a change that conflicts with another writer's commit. */
const retries = 20
/** How often it is looked whether the store is there, in ms. */
const healthInterval = 1_000
/** Values of a change from which on others may work between two steps of it. */
const manyValues = 2_000

/**
 * The settings: read from a snapshot in memory, changed by commits that are durable when they resolve. Events:
 * `changed` for every new snapshot, `committed` for each commit of this process, `edited` for what others have changed:
 * an edit of the settings file, or another replica; `outdated` when credentials begin to be refused, since the storage
 * of several replicas has been away for so long.
 */
export class Settings extends EventEmitter<{
  changed: [next: Snapshot, former: Snapshot]
  committed: [Committed]
  edited: [next: Snapshot, former: Snapshot]
  outdated: [reason: string]
}> {
  readonly #store: Store
  readonly #readonly: boolean
  readonly #unsubscribe: () => void
  readonly #lookUps: FreshLookUps
  readonly #turns = new Semaphore({ places: 1 })
  readonly #waiting = new Shares(settingsLimits.changes, 'changes of the settings')
  readonly #rate = new TokenBucket(settingsLimits.userChanges, { maxKeys: settingsLimits.userChanges.owners })
  readonly #changing = new Set<Promise<unknown>>()
  readonly #view: View
  readonly #watch: NodeJS.Timeout
  #current: Snapshot
  /** Since when the store has not been there, in ms since the epoch; undefined: it is there. */
  #awaySince: number | undefined
  #wasOutdated = false

  /**
   * @param readonly READONLY: the health of the store does not depend on whether it can write
   * @param view what is read of a stored snapshot, such as which servers may not be started now
   */
  static async open (store: Store, readonly = false, view: View = (snapshot) => snapshot): Promise<Settings> {
    return new Settings(store, await store.load(), readonly, view)
  }

  private constructor (store: Store, current: Snapshot, readonly: boolean, view: View) {
    super()
    this.setMaxListeners(0)
    this.#store = store
    this.#lookUps = new FreshLookUps(store)
    this.#readonly = readonly
    this.#view = view
    this.#current = view(current)
    this.#watch = setInterval(() => { this.#lookAtStore() }, healthInterval).unref()
    this.#unsubscribe = store.onChange((snapshot) => {
      const former = this.#current
      if (this.#take(snapshot)) this.emit('edited', this.#current, former)
    })
  }

  get current (): Snapshot { return this.#current }

  /** The reason why the store cannot read or write now; undefined when it can. */
  get problem (): string | undefined { return this.#store.health(this.#readonly) }

  /**
   * The reason why the store has been away for so long (`settingsLimits.storageAway`) that the process is of no use;
   * undefined: it has not.
   */
  get outage (): string | undefined {
    this.#lookAtStore()
    return this.#isTooLongAway ? this.problem : undefined
  }

  /** The store of several replicas has been away for so long that nobody knows which credentials still count. */
  get isOutdated (): boolean { return this.#store.refresh !== undefined && this.outage !== undefined }

  #lookAtStore (): void {
    const { problem } = this
    this.#awaySince = problem === undefined ? undefined : this.#awaySince ?? Date.now()
    const isOutdated = this.#store.refresh !== undefined && this.#isTooLongAway
    if (isOutdated && !this.#wasOutdated && problem !== undefined) this.emit('outdated', problem)
    this.#wasOutdated = isOutdated
  }

  get #isTooLongAway (): boolean {
    return this.#awaySince !== undefined && Date.now() - this.#awaySince >= settingsLimits.storageAway
  }

  /**
   * Looks once for a change by another replica, since something is unknown here that may have been stored there a
   * moment ago. `current` is then another snapshot, or it stays.
   * @returns undefined: nothing is looked up
   * @throws DataAway (as a rejection) while the storage of several replicas is away: what is unknown here may be stored
   *   there
   */
  lookUp (): Promise<void> | undefined {
    const looking = this.#isAway ? Promise.resolve(false) : this.#lookUps.request()
    return looking?.then((hasAnswered) => {
      if (!hasAnswered || this.#isAway) throw new errors.DataAway()
    })
  }

  /** Other replicas may have stored what cannot be read now. */
  get #isAway (): boolean { return this.#store.refresh !== undefined && this.#store.health(true) !== undefined }

  /**
   * Changes the settings.
   * @param work makes the changes from the newest snapshot, or throws why it cannot; it runs again after a conflict
   *   with another writer
   * @param by the principal that asked for them, whose rights are checked against each snapshot that `work` gets; or
   *   the name of a user whose rights are known; undefined: the gateway itself
   * @returns the snapshot with the changes
   * @throws Unauthorized, Forbidden, EditedOnDisk, InvalidChange, StorageFull, DiskFailing, StorageAway, ShareError
   */
  async change (work: (snapshot: Snapshot) => readonly Change[], by?: Principal | string): Promise<Snapshot> {
    // The gateway's own changes are few, and none of them may be refused.
    const owner = by === undefined ? undefined : accountOf(by)
    if (typeof by === 'object') this.#count(by, settingsLimits.userChanges.each)
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
   * Counts the size of a change, if it is large: storing it holds everybody else for a moment. Those of admins are not
   * counted.
   * @param size of what is sent or stored, in characters
   * @throws ShareError when the principal has made too many of them lately
   */
  countLarge (principal: Principal, size: number): void {
    if (size > baseLimits.steppedBody) this.#count(principal, size)
  }

  /** @throws ShareError */
  #count (principal: Principal, size: number): void {
    if (principal.isAdmin || this.#rate.take(accountOf(principal), size)) return
    throw new ShareError('You make more changes, or larger ones, than one user may; try again in a minute', true)
  }

  /**
   * Runs changes one after the other, so that conflicts are always with writers outside of this process. Owners take
   * turns.
   */
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
    for (let left = retries; ; left--) {
      const base = this.#current
      if (typeof by === 'object') mustStand(base, by)
      const asked = work(base)
      if (asked.length === 0) return base
      // The hashes come first, since the changes may touch the same keys: a server's new name goes into their scopes.
      const changes = [...hashTokens(base, asked), ...asked]
      await pauseAfter(asked)
      try {
        const stored = await this.#store.commit(changes, base.version)
        this.#take(stored)
        const next = this.#current.version === stored.version ? this.#current : this.#view(stored)
        await pauseAfter(asked)
        this.emit('committed', { by: author, changes: asked, former: base, next })
        return next
      } catch (error) {
        if (error instanceof Conflict) {
          if (left > 0 && this.#current !== base) continue
          if (error.edited) throw new errors.EditedOnDisk(error.message)
          if (left === 0) throw new errors.StorageAway('too many changes at once')
          await new Promise((resolve) => { setImmediate(resolve) })
          continue
        }
        throw toHttpError(error)
      }
    }
  }

  /** Resolves when all changes in progress have ended. Those that still wait for the store after `ms` are given up. */
  async drain (ms: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        this.#store.hurry?.()
        resolve()
      }, ms)
    })
    await Promise.race([late, this.#settled()])
    clearTimeout(timer)
  }

  async #settled (): Promise<void> {
    while (this.#changing.size > 0) await Promise.allSettled(this.#changing)
  }

  /** Closes the store. */
  async close (): Promise<void> {
    clearInterval(this.#watch)
    this.#unsubscribe()
    await this.#store.close()
  }

  /** Makes a snapshot the current one, unless it is older. @returns whether it did */
  #take (stored: Snapshot): boolean {
    if (stored.version <= this.#current.version) return false
    const former = this.#current
    const next = this.#current = this.#view(stored)
    this.emit('changed', next, former)
    return true
  }
}

/**
 * Lets others work between two steps of a change of many values, each of which looks at all of them. No `setImmediate`:
 * after a callback of I/O, that runs before the event loop looks at its sockets again.
 */
async function pauseAfter (changes: readonly Change[]): Promise<void> {
  if (countValues(changes, manyValues) > manyValues) await sleep(0)
}

/** The account that a change is counted to: a user's, with all of the user's keys, or another principal's. */
const accountOf = (by: Principal | string): string => typeof by === 'string' ? by : by.username ?? by.key

/** The HTTP error for an error of the store. */
function toHttpError (error: unknown): unknown {
  if (error instanceof Invalid) return new errors.InvalidChange(error.message)
  return error instanceof StorageError ? storageFault(error, new errors.StorageAway(error.message)) : error
}

/**
 * Checks that a principal did not lose its credential or its rights while its request was in progress.
 * @throws Unauthorized, Forbidden
 */
function mustStand (snapshot: Snapshot, { standing, isAdmin }: Principal): void {
  if (standing === undefined) return
  const now = standing(snapshot)
  if (!now) throw new errors.Unauthorized('This credential is not valid any more, and nothing was changed')
  if (isAdmin && !now.isAdmin) throw new errors.Forbidden('You are not an admin any more, and nothing was changed')
}

/**
 * The changes that replace plain tokens, which an edit of the settings file left, by hashes: made whenever something is
 * written.
 */
function hashTokens ({ keys }: Snapshot, asked: readonly Change[]): Change[] {
  const touched = new Set(asked.flatMap((change) => change.entity === 'bearerKeys' ? [change.key] : []))
  return [...keys.values()].flatMap((key): Change[] =>
    key.token === undefined ||
      touched.has(key.id)
      ? []
      : [{ entity: 'bearerKeys', key: key.id, value: withoutToken(key) }]
  )
}
