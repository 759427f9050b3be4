import type { Db, DatabaseDriver } from './driver.ts'

/**
 * Timeouts of database operations, in ms. `head`: reading the head; `read`: reading rows; `write`: writing a commit, or
 * a query of a port; `seed`: writing the first commit. They are for a database that does not respond at all; otherwise,
 * the database ends slow statements and idle transactions itself, after `statement`.
 */
export const timeouts = { head: 5_000, read: 15_000, write: 11_000, seed: 60_000, statement: 10_000 }

/**
 * Runs a database operation with a timeout in ms. When it expires, all connections are dropped, since they could hang
 * for hours.
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
