import pLimit from 'p-limit'
import { StorageError } from '../../store.ts'
import type { Db, Driver, Transaction } from './driver.ts'
import { errorCodeOf, safeMessageOf } from './failures.ts'
import { timeouts, withTimeout } from './timeouts.ts'

/** Runs database work. @throws StorageError */
type Query<On = Db> = <Result>(work: (on: On) => Promise<Result>) => Promise<Result>

/**
 * The ports' access to the database. Each method has its own concurrency limit; together they leave connections free
 * for the settings store, which must not wait for the ports.
 */
export interface QueryRunner {
  /** For statements that find a few rows by an index. */
  quick: Query
  /** For statements that may take seconds. */
  slow: Query
  /** For work in one transaction. */
  transact: Query<Transaction>
  /** For transactions that nobody waits for. They run one at a time and delay no other query. */
  record: Query<Transaction>
}

/** Max waiting queries per method of `QueryRunner`. */
const maxWaiting = 1_000

/** @param health why the database is known to be unavailable: queries then fail at once, without an attempt */
export function createQueryRunner (driver: Driver, health: () => string | undefined): QueryRunner {
  const limited = (concurrency: number): Query => {
    const limit = pLimit(concurrency)
    return async (work) => {
      // `activeCount` is included, since p-limit counts a call as pending until the next microtask even when it can run
      // at once.
      if (limit.activeCount + limit.pendingCount >= concurrency + maxWaiting) {
        throw new StorageError('The database has too much to do. Try again in a moment.', false)
      }
      return await limit(async () => await run(driver, health, work))
    }
  }
  const transactions = (concurrency: number): Query<Transaction> => {
    const inTransaction = limited(concurrency)
    return async (work) => await inTransaction(async (db) => await db.transaction(work))
  }
  return { quick: limited(2), slow: limited(1), transact: transactions(2), record: transactions(1) }
}

async function run<Result> (
  driver: Driver, health: () => string | undefined, work: (db: Db) => Promise<Result>
): Promise<Result> {
  const unavailable = health()
  if (unavailable !== undefined) throw new StorageError(unavailable, false)
  try {
    return await withTimeout(driver, timeouts.write, work)
  } catch (error) {
    if (error instanceof StorageError) throw error
    const code = errorCodeOf(error)
    const isFull = code === '53100'
    throw new StorageError(isFull ? 'The database has no space left.' : safeMessageOf(error), isFull, code === '58030')
  }
}
