import pLimit from 'p-limit'
import { StorageError } from '../../store.ts'
import type { Db, DatabaseDriver, Transaction } from './driver.ts'
import { databaseErrorCode, safeMessageOf } from './failures.ts'
import { timeouts, withTimeout } from './timeouts.ts'

/** Runs work on the database. @throws StorageError */
type RunQuery<On = Db> = <Result>(work: (on: On) => Promise<Result>) => Promise<Result>

/**
 * The ports' access to the database. Each method has its own concurrency limit; together they leave connections free
 * for the settings store, which must not wait for the ports.
 */
export interface QueryRunner {
  /** Runs statements that find a few rows by an index. */
  runQuick: RunQuery
  /** Runs statements that may take seconds. */
  runSlow: RunQuery
  runTransaction: RunQuery<Transaction>
  /** Runs background transactions one at a time. They do not delay other queries. */
  runBackground: RunQuery<Transaction>
}

/** Max waiting calls per method of `QueryRunner`; beyond that, calls fail with StorageError. */
const maxWaiting = 1_000

/**
 * Creates the query runner of a database.
 * @param health returns why the database is unavailable, with which queries then fail at once; undefined if it is
 *   available
 */
export function createQueryRunner (driver: DatabaseDriver, health: () => string | undefined): QueryRunner {
  const createLimitedRunner = (concurrency: number): RunQuery => {
    const limit = pLimit(concurrency)
    return async (work) => {
      // `activeCount` is included, since p-limit counts a call as pending until the next microtask even when it can run
      // at once.
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
