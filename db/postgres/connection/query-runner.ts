import pLimit from 'p-limit'
import { StorageError } from '../../store.ts'
import type { Db, DatabaseDriver, Transaction } from './driver.ts'
import { databaseErrorCode, safeMessageOf } from './failures.ts'
import { timeouts, withTimeout } from './timeouts.ts'

/** Runs work on the database, or in a transaction, and returns its result. @throws StorageError */
type RunQuery<On = Db> = <Result>(work: (on: On) => Promise<Result>) => Promise<Result>

/**
 * Runs the queries of the ports. Each method has its own concurrency limit; the limits leave connections free for the
 * settings store, which must not wait for the ports.
 */
export interface QueryRunner {
  /** Runs statements that find a few rows by an index. */
  runQuick: RunQuery
  /** Runs statements that may take seconds. */
  runSlow: RunQuery
  /** Runs work in a transaction. */
  runTransaction: RunQuery<Transaction>
  /** Runs background work in transactions, one at a time, without delaying other queries. */
  runBackground: RunQuery<Transaction>
}

/** Max number of waiting calls per method of `QueryRunner`; beyond it, calls fail with StorageError. */
const maxWaiting = 1_000

/**
 * Creates the query runner of a database.
 * @param health returns why the database is unavailable, as a sentence; queries then fail at once with this message.
 *   Returns undefined if the database is available
 */
export function createQueryRunner (driver: DatabaseDriver, health: () => string | undefined): QueryRunner {
  const createLimitedRunner = (concurrency: number): RunQuery => {
    const limit = pLimit(concurrency)
    return async (work) => {
      // `activeCount` is included, since p-limit counts even a call that can run at once as pending until the next
      // microtask.
      if (limit.activeCount + limit.pendingCount >= concurrency + maxWaiting) {
        throw new StorageError('The database is overloaded. Try again in a moment.', false)
      }
      return await limit(async () => await runWithTimeout(driver, health, work))
    }
  }
  const createTransactionRunner = (concurrency: number): RunQuery<Transaction> => {
    const run = createLimitedRunner(concurrency)
    return async (work) => await run(async (db) => await db.transaction(work))
  }
  return {
    runQuick: createLimitedRunner(2),
    runSlow: createLimitedRunner(1),
    runTransaction: createTransactionRunner(2),
    runBackground: createTransactionRunner(1)
  }
}

async function runWithTimeout<Result> (
  driver: DatabaseDriver, health: () => string | undefined, work: (db: Db) => Promise<Result>
): Promise<Result> {
  const unavailable = health()
  if (unavailable !== undefined) throw new StorageError(unavailable, false)
  try {
    return await withTimeout(driver, timeouts.write, work)
  } catch (error) {
    if (error instanceof StorageError) throw error
    const code = databaseErrorCode(error)
    const isFull = code === '53100'
    throw new StorageError(isFull ? 'The database has no space left.' : safeMessageOf(error), isFull, code === '58030')
  }
}
