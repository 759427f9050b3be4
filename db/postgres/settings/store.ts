import { randomUUID } from 'node:crypto'
import pLimit from 'p-limit'
import { applyChanges } from '../../apply.ts'
import { parseSnapshot, type ParsedSettings } from '../../document.ts'
import { checkInvariants, checkChangedValues } from '../../invariants.ts'
import { SnapshotListeners } from '../../listeners.ts'
import type { Seed } from '../../seed.ts'
import { ConflictError, StorageError, type Change, type Snapshot, type Store, type Vault } from '../../store.ts'
import { insertClients } from '../client-rows.ts'
import { commitRows } from './commit.ts'
import type { Db, DatabaseDriver } from '../connection/driver.ts'
import { ChangeFeed } from './change-feed.ts'
import { readHead, readRowsInTransaction, readRows, type DatabaseState } from './read.ts'
import { toDocument, toUpdatedRows } from './rows.ts'
import { assertUndecryptableSecretsReplaced } from './stored.ts'
import {
  databaseErrorCode, toCommitError, isDatabaseUnavailable, safeMessageOf, unavailableMessage, tooLongCode
} from '../connection/failures.ts'
import { CommitLock } from './commit-lock.ts'
import { endStuckConnections } from '../connection/stuck.ts'
import { timeouts, withTimeout } from '../connection/timeouts.ts'
import { resealInBatches } from './reseal.ts'
import { insertUserValues, toDatabaseContent } from './transfer.ts'
import { writeFirstCommit } from './write.ts'

/** How long the commit lock is held for a retry of the caller, in ms. Other replicas cannot commit during that time. */
const lockHoldTime = 200
/** Time from a failed commit until the next poll, in ms. */
const pollDelayAfterFailure = 100

/** The state of the database as last read or written, and the document and snapshot derived from it. */
interface State { readonly database: DatabaseState, readonly reading: ParsedSettings }

interface PostgresStoreOptions {
  driver: DatabaseDriver
  vault: Vault
  warn: (message: string) => void
  /** Returns the initial content of an empty database. If it throws, the database stays empty. */
  seed: () => Promise<Seed>
}

/**
 * The settings in PostgreSQL, one row per entry, with a full copy in memory. A commit is computed from the copy, and
 * written only if no other replica has committed since the copy was read. Commits of other replicas are announced by
 * NOTIFY; a poll finds commits whose notification was lost.
 */
export class PostgresStore implements Store {
  readonly isShared = true
  readonly #driver: DatabaseDriver
  readonly #vault: Vault
  readonly #warn: (message: string) => void
  readonly #seed: () => Promise<Seed>
  /** All reads and writes of the database run one at a time, in the order of the calls. */
  readonly #queue = pLimit(1)
  readonly #listeners: SnapshotListeners
  /** The error codes for which a failed commit was logged: each is logged only once. */
  readonly #loggedCodes = new Set<string>()
  readonly #changeFeed: ChangeFeed
  #state: State | undefined
  /** A sentence that says why the database is unavailable; undefined if it is available. */
  #unavailable: string | undefined
  #commitLock: CommitLock | undefined
  /** The id of the newest announced commit, while a read of it is scheduled. */
  #notifiedHead: string | undefined
  /** Whether the store is closed or was told to abort, so that no new operation is started. */
  #isClosed = false
  /** Whether `close` has ended the connections. */
  #hasEnded = false

  constructor ({ driver, vault, warn, seed }: PostgresStoreOptions) {
    this.#driver = driver
    this.#vault = vault
    this.#warn = warn
    this.#listeners = new SnapshotListeners(warn)
    this.#seed = seed
    this.#changeFeed = new ChangeFeed({
      driver,
      poll: async () => await this.#queue(async () => await this.#poll()),
      onNotification: (head) => { this.#onNotification(head) }
    })
  }

  async load (): Promise<Snapshot> {
    return await this.#queue(async () => {
      if (this.#isClosed) throw new Error('The store is closed.')
      try {
        this.#state = this.#state ? await this.#refresh(this.#state) : await this.#readInitialState()
        return this.#state.reading.snapshot
      } catch (error) {
        throw new Error(safeMessageOf(error))
      }
    })
  }

  async commit (changes: readonly Change[], baseVersion: number): Promise<Snapshot> {
    this.#checkHealth()
    return await this.#queue(async () => {
      if (!this.#state) throw new Error('load comes before commit')
      if (baseVersion !== this.#state.reading.snapshot.version) {
        throw new ConflictError('The settings have been changed in the meantime.', false)
      }
      this.#checkHealth()
      const lock = this.#commitLock
      this.#commitLock = undefined
      try {
        return await this.#commit(this.#state, changes, lock)
      } finally {
        lock?.release()
      }
    })
  }

  onChange (listener: (snapshot: Snapshot) => void): () => void { return this.#listeners.add(listener) }

  async refresh (): Promise<void> {
    if (this.health() === undefined) await this.#queue(async () => { await this.#poll() })
  }

  health (): string | undefined { return this.#isClosed ? 'The store is closed.' : this.#unavailable }

  abortPending (): void {
    this.#isClosed = true
    this.#changeFeed.close()
    this.#driver.reconnect()
  }

  async close (): Promise<void> {
    this.#changeFeed.close()
    await this.#queue(async () => {
      if (this.#hasEnded) return
      this.#isClosed = this.#hasEnded = true
      this.#commitLock?.release()
      this.#listeners.clear()
      await this.#driver.end()
    })
  }

  /** Refuses a commit while the database is known to be unavailable. @throws StorageError */
  #checkHealth (): void {
    const reason = this.health()
    if (reason !== undefined) throw new StorageError(this.#isClosed ? reason : `${reason} Nothing was changed.`, false)
  }

  async #readInitialState (): Promise<State> {
    if (await withTimeout(this.#driver, timeouts.head, readHead) === undefined) {
      const first = await this.#seed()
      const { writes, clients, userValues, warnings } = toDatabaseContent(first.document, this.#vault)
      const isStored = await withTimeout(this.#driver, timeouts.seed, async (db) =>
        await writeFirstCommit(db, randomUUID(), writes, async (tx) => {
          await insertClients(tx, clients)
          await insertUserValues(tx, this.#vault, userValues)
        }))
      for (const message of isStored ? [...first.messages, ...warnings] : []) this.#warn(message)
    }
    // Listening begins before the read, so that no later commit is missed.
    await this.#changeFeed.open()
    const database = await withTimeout(this.#driver, timeouts.read, async (db) => await readRows(db, this.#vault))
    return { database, reading: parseSnapshot(toDocument(database.rows), database.version) }
  }

  async #commit (
    { database: base, reading: former }: State, changes: readonly Change[], lock: CommitLock | undefined
  ): Promise<Snapshot> {
    checkChangedValues(changes)
    const document = applyChanges(former.document, changes)
    const rows = toUpdatedRows({ rows: base.rows, document: former.document }, document, changes)
    assertUndecryptableSecretsReplaced(base.rows, rows, this.#vault)
    const reading = document === former.document
      ? former
      : parseSnapshot(document, former.snapshot.version + 1, former)
    checkInvariants(former.snapshot, reading.snapshot)
    try {
      const database =
        await commitRows({ driver: this.#driver, vault: this.#vault, base, rows, lock, isClosed: () => this.#isClosed })
      if (database !== undefined) {
        this.#state = { database, reading }
        return reading.snapshot
      }
      await this.#acquireCommitLock({ database: base, reading: former })
    } catch (error) {
      throw this.#handleFailure(error)
    }
    throw new ConflictError('The settings have been changed in the meantime.', false)
  }

  /** Reads commits of other replicas. If there are new commits, it notifies the listeners. */
  async #refresh (former: State): Promise<State> {
    const head = await withTimeout(this.#driver, timeouts.head, readHead)
    if (this.#unavailable !== undefined) this.#warn('The database is available again, and the settings can be changed.')
    this.#unavailable = undefined
    if (head?.version === former.database.version && head.head === former.database.head) return former
    const rows = async (db: Db): Promise<DatabaseState> => await readRows(db, this.#vault, former.database)
    return this.#adopt(former, await withTimeout(this.#driver, timeouts.read, rows))
  }

  /** Acquires the commit lock for a retry of the caller, and reads the newest state under the lock (`CommitLock`). */
  async #acquireCommitLock (former: State): Promise<void> {
    const lock = await withTimeout(this.#driver, timeouts.write, async (db) => await CommitLock.acquire(db))
    try {
      const readUnderLock = async (): Promise<DatabaseState> =>
        await readRowsInTransaction(lock.tx, this.#vault, former.database)
      this.#adopt(former, await withTimeout(this.#driver, timeouts.read, readUnderLock))
    } catch (error) {
      lock.release()
      throw error
    }
    this.#commitLock = lock
    setTimeout(() => {
      if (this.#commitLock !== lock) return
      this.#commitLock = undefined
      lock.release()
    }, lockHoldTime)
  }

  /** Makes a newly read state the current one, and notifies the listeners. */
  #adopt (former: State, database: DatabaseState): State {
    const document = toDocument(database.rows, { rows: former.database.rows, document: former.reading.document })
    const version = Math.max(former.reading.snapshot.version + 1, database.version)
    const reading = parseSnapshot(document, version, former.reading)
    this.#state = { database, reading }
    this.#listeners.notify(reading.snapshot)
    return this.#state
  }

  /** Records and logs the failure of a commit. @returns the error to throw */
  #handleFailure (error: unknown): Error {
    const failure = toCommitError(error)
    if (databaseErrorCode(error) === tooLongCode) void this.#endStuckConnections()
    if (isDatabaseUnavailable(error)) {
      this.#markUnavailable(unavailableMessage(error))
      this.#changeFeed.schedulePoll(pollDelayAfterFailure)
      return failure
    }
    const code = databaseErrorCode(error)
    if (code !== undefined && failure instanceof StorageError && !this.#loggedCodes.has(code)) {
      this.#loggedCodes.add(code)
      this.#warn(`A change could not be stored. ${failure.message}`)
    }
    return failure
  }

  /** Frees the locks that stopped replicas hold, so that the next commit succeeds. */
  async #endStuckConnections (): Promise<void> {
    const count = await endStuckConnections(this.#driver.db).catch(() => 0)
    if (count > 0) this.#warn(`Connections of replicas that do not respond were ended, with their locks: ${count}.`)
  }

  #markUnavailable (reason: string): void {
    if (this.#unavailable === undefined) {
      this.#warn(`${reason} The last known settings stay in effect, and nothing can be changed until this is resolved.`)
    }
    this.#unavailable = reason
  }

  /** Schedules one read for all commits announced until then. The read is skipped if this replica made the last one. */
  #onNotification (head: string): void {
    const isScheduled = this.#notifiedHead !== undefined
    this.#notifiedHead = head
    if (isScheduled) return
    void this.#queue(async () => {
      const isOwn = this.#notifiedHead === this.#state?.database.head
      this.#notifiedHead = undefined
      if (!isOwn) await this.#poll()
    })
  }

  async #poll (): Promise<{ hasChanged: boolean, isUnavailable: boolean }> {
    const former = this.#state
    if (this.#isClosed || !former) return { hasChanged: false, isUnavailable: false }
    try {
      const now = await this.#refresh(former)
      return { hasChanged: now !== former, isUnavailable: false }
    } catch (error) {
      this.#markUnavailable(
        isDatabaseUnavailable(error)
          ? unavailableMessage(error)
          : `A change by another replica cannot be used: ${safeMessageOf(error)}`
      )
      return { hasChanged: false, isUnavailable: true }
    }
  }

  /**
   * Re-encrypts with the newest key those secrets of settings and clients that were encrypted with a former key, in
   * batches, each of which is queued separately, so that commits can run in between.
   * @returns the number of rows, as `resealInBatches` does
   */
  async reseal (): Promise<number> {
    const state = await withTimeout(this.#driver, timeouts.read, async (db) => await readRows(db, this.#vault))
    return await resealInBatches(state, this.#vault, async (work) => await this.#queue(async () => {
      if (this.#isClosed) throw new StorageError('The store is closed.', false)
      return await withTimeout(this.#driver, timeouts.read, work)
    }))
  }
}
