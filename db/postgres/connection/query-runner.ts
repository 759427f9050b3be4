import { DrizzleQueryError } from 'drizzle-orm'
import pLimit from 'p-limit'
import { StorageError } from '../../store.ts'
import type { Db, DatabaseDriver, Transaction } from './driver.ts'
import { databaseErrorCode, safeMessageOf, tooLongCode } from './failures.ts'
import { endStuckConnections } from './stuck.ts'
import { timeouts, withTimeout } from './timeouts.ts'

/** Runs work on the database, or in a transaction. @throws StorageError, or an error of the work's own code */
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
  const createRunner = <On>(concurrency: number, begin: <Result>(
    db: Db, work: (on: On) => Promise<Result>
  ) => Promise<Result>): RunQuery<On> => {
    const limit = pLimit(concurrency)
    return async (work) => {
      // `activeCount` is included, since p-limit counts even a call that can run at once as pending until the next
      // microtask.
      if (limit.activeCount + limit.pendingCount >= concurrency + maxWaiting) {
        throw new StorageError('The database is overloaded. Try again in a moment.', false)
      }
      return await limit(async () => await runWithTimeout(driver, health, async (db) =>
        await begin(db, async (on) => await markOwnErrors(on, work))))
    }
  }
  const createStatementRunner = (concurrency: number): RunQuery =>
    createRunner<Db>(concurrency, async (db, work) => await work(db))
  const createTransactionRunner = (concurrency: number): RunQuery<Transaction> =>
    createRunner<Transaction>(concurrency, async (db, work) => await db.transaction(work))
  return {
    runQuick: createStatementRunner(2),
    runSlow: createStatementRunner(1),
    runTransaction: createTransactionRunner(2),
    runBackground: createTransactionRunner(1)
  }
}

/** The errors that the work of a query has thrown, other than those of the database. */
const ownErrors = new WeakSet<object>()

/** Runs work, and marks an error of its own code, so that the error is not taken for one of the database. */
async function markOwnErrors<On, Result> (on: On, work: (on: On) => Promise<Result>): Promise<Result> {
  try {
    return await work(on)
  } catch (error) {
    // Drizzle wraps each error of a query. It does not wrap those of `begin` and `commit`, which are not thrown here.
    if (error instanceof Error && !(error instanceof DrizzleQueryError)) ownErrors.add(error)
    throw error
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
    if (error instanceof StorageError || (error instanceof Error && ownErrors.has(error))) throw error
    const code = databaseErrorCode(error)
    if (code === tooLongCode) void endStuckConnections(driver.db).catch(() => {})
    const isFull = code === '53100'
    throw new StorageError(isFull ? 'The database has no space left.' : safeMessageOf(error), isFull, code === '58030')
  }
}
