import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { StorageError, type Vault } from '../../store.ts'
import type { DatabaseDriver, Transaction } from '../connection/driver.ts'
import { readHead, type DatabaseState } from './read.ts'
import type { SettingsRows } from './rows.ts'
import { isConcurrencyFailure, isDatabaseUnavailable } from '../connection/failures.ts'
import type { CommitLock } from './commit-lock.ts'
import { timeouts, withTimeout } from '../connection/timeouts.ts'
import { planWrites, wasCommitted, writeCommit } from './write.ts'

interface CommitOptions {
  driver: DatabaseDriver
  vault: Vault
  /** The state of the database on which `rows` are based. */
  base: DatabaseState
  /** All rows of the settings after the commit. */
  rows: SettingsRows
  /** The lock in whose transaction the commit is made; undefined for a new transaction. */
  lock: CommitLock | undefined
  /** Returns whether the store was closed: the outcome of an interrupted commit is then no longer determined. */
  isClosed: () => boolean
}

/** Delay between two attempts of `findOutcome`, in ms. */
const retryDelay = 250

/**
 * Writes the changed rows to the database, unless another replica has committed since `base`.
 * @returns the new state of the database; undefined if another replica has committed, so that nothing was changed
 * @throws StorageError if it is unknown whether the commit was made; the driver's error if nothing was changed
 */
export async function commitRows (
  { driver, vault, base, rows, lock, isClosed }: CommitOptions
): Promise<DatabaseState | undefined> {
  const writes = planWrites(base.rows, rows, vault)
  if (writes.size === 0) {
    const head = await withTimeout(driver, timeouts.head, readHead)
    return head?.version === base.version && head.head === base.head ? base : undefined
  }
  const id = randomUUID()
  let isWritten = false
  const work = async (tx: Transaction): Promise<void> => { isWritten = await writeCommit(tx, base, id, writes) }
  try {
    await withTimeout(driver, timeouts.write, async (db) => { await (lock ? lock.run(work) : db.transaction(work)) })
    if (!isWritten) return undefined
  } catch (error) {
    if (isConcurrencyFailure(error)) return undefined
    // If the connection broke after COMMIT was sent, the commit may have been made nevertheless.
    if (!isWritten || !isDatabaseUnavailable(error) || !await findOutcome(driver, base, id, isClosed)) throw error
  }
  return { version: base.version + 1, head: id, rows, outdated: [] }
}

/**
 * Determines whether a commit was made, with retries while the database is unavailable.
 * @throws StorageError if the database stays unavailable for `timeouts.write`, or the store was closed
 */
async function findOutcome (
  driver: DatabaseDriver, base: DatabaseState, id: string, isClosed: () => boolean
): Promise<boolean> {
  const until = Date.now() + timeouts.write
  while (!isClosed() && Date.now() <= until) {
    try {
      return await withTimeout(driver, timeouts.head, async (db) => await wasCommitted(db, base, id))
    } catch {
      await sleep(retryDelay)
    }
  }
  throw new StorageError(
    'The database became unavailable during the write, so it is unknown whether the change was made. Check when it ' +
    'is available again.',
    false
  )
}
