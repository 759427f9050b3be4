import type { Db, DatabaseDriver } from './driver.ts'

/**
 * Timeouts of database operations, in ms. `head`: reading the version of the settings; `read`: reading settings;
 * `write`: writing a commit, or a query of a port; `seed`: writing the first commit. These timeouts are for a database
 * that does not respond at all. `statement`: the timeout after which the database itself ends slow statements and idle
 * transactions.
 */
export const timeouts = { head: 5_000, read: 15_000, write: 11_000, seed: 60_000, statement: 10_000 }

/**
 * Runs a database operation with a timeout. When the timeout expires, all connections are dropped, since they could
 * hang for hours.
 * @param ms the timeout, in ms
 * @throws Error with the code `ETIMEDOUT` after the timeout
 */
export async function withTimeout<Result> (
  driver: DatabaseDriver, ms: number, work: (db: Db) => Promise<Result>
): Promise<Result> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      driver.reconnect()
      reject(Object.assign(new Error('no answer'), { code: 'ETIMEDOUT' }))
    }, ms)
  })
  const working = work(driver.db)
  working.catch(() => {})
  try {
    return await Promise.race([working, timeout])
  } finally {
    clearTimeout(timer)
  }
}
