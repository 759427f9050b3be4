import type { Db, Driver } from './driver.ts'

/** How long to wait for an answer, in ms: a database that is there says itself when something takes too long. */
export const patience = { look: 5_000, read: 15_000, write: 11_000, begin: 60_000 }

/** Runs something on a database that must end within so many ms; else all connections are dropped, since they may hang for hours. */
export async function within<Result> (driver: Driver, ms: number, work: (db: Db) => Promise<Result>): Promise<Result> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      driver.reset()
      reject(Object.assign(new Error('no answer'), { code: 'ETIMEDOUT' }))
    }, ms)
  })
  const working = work(driver.db)
  working.catch(() => {})
  try {
    return await Promise.race([working, late])
  } finally {
    clearTimeout(timer)
  }
}
