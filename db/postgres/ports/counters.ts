import { createHash } from 'node:crypto'
import { and, eq, gt, lt, sql } from 'drizzle-orm'
import { MemoryCounters } from '../../memory/counters.ts'
import type { Counters } from '../../store.ts'
import type { DatabaseDriver } from '../connection/driver.ts'
import { counters } from '../tables.ts'

/** Min time between two removals of expired counters, in ms. */
const cleanupInterval = 60_000
/** Max number of counters. Beyond it, those that expire first are removed. */
const maxCounters = 100_000

/** Max count of a counter, since the column has the type `integer` of PostgreSQL. */
const maxCount = 2_147_483_647
const timeLeft = sql<string>`ceil(extract(epoch from ${counters.expires} - now()) * 1000)`

/** Returns the hash by which a key is stored, since keys may contain usernames and addresses, and have any length. */
const hash = (key: string): string => createHash('sha256').update(key).digest('base64url')

/** Stores the counters that all replicas share. While the database is unavailable, each replica counts in memory. */
export class PostgresCounters implements Counters {
  readonly #driver: DatabaseDriver
  readonly #isUnavailable: () => boolean
  readonly #fallback = new MemoryCounters(maxCounters)
  #lastCleanup = Date.now()

  constructor (driver: DatabaseDriver, isUnavailable: () => boolean) {
    this.#driver = driver
    this.#isUnavailable = isUnavailable
  }

  async reset (key: string): Promise<void> {
    await this.#fallback.reset(key)
    if (!this.#isUnavailable()) {
      await this.#driver.db.delete(counters).where(eq(counters.key, hash(key))).catch(() => {})
    }
  }

  async take (
    key: string, amount: number, window: number, max = Infinity
  ): Promise<{ isTaken: boolean, count: number, left: number }> {
    if (max <= 0) return { isTaken: false, count: 0, left: window }
    if (this.#isUnavailable()) return await this.#fallback.take(key, amount, window, max)
    const expires = sql`now() + ${window} * interval '1 millisecond'`
    const isExpired = sql`${counters.expires} <= now()`
    try {
      const [taken] = await this.#driver.db
        .insert(counters)
        .values({ key: hash(key), count: amount, expires })
        .onConflictDoUpdate({
          target: counters.key,
          set: {
            count: sql`case when ${isExpired} then excluded.count
              else least(${counters.count}::bigint + excluded.count, ${maxCount})::integer end`,
            expires: sql`case when ${isExpired} then excluded.expires else ${counters.expires} end`
          },
          setWhere: Number.isFinite(max) ? sql`${isExpired} or ${counters.count} < ${max}` : undefined
        })
        .returning({ count: counters.count, left: timeLeft })
      if (Date.now() - this.#lastCleanup > cleanupInterval) this.#cleanUp()
      if (taken) return { isTaken: true, count: taken.count, left: Number(taken.left) }
      return { isTaken: false, ...await this.read(key) }
    } catch {
      return await this.#fallback.take(key, amount, window, max)
    }
  }

  async giveBack (key: string, amount: number): Promise<void> {
    await this.#fallback.giveBack(key, amount)
    if (this.#isUnavailable()) return
    await this.#driver.db.update(counters).set({ count: sql`greatest(${counters.count} - ${amount}, 0)` })
      .where(eq(counters.key, hash(key))).catch(() => {})
  }

  async read (key: string): Promise<{ count: number, left: number }> {
    if (this.#isUnavailable()) return await this.#fallback.read(key)
    try {
      const [found] = await this.#driver.db.select({ count: counters.count, left: timeLeft }).from(counters)
        .where(and(eq(counters.key, hash(key)), gt(counters.expires, sql`now()`)))
      return { count: found?.count ?? 0, left: Number(found?.left ?? 0) }
    } catch {
      return await this.#fallback.read(key)
    }
  }

  #cleanUp (): void {
    this.#lastCleanup = Date.now()
    void (async () => {
      await this.#driver.db.delete(counters).where(lt(counters.expires, sql`now()`))
      await this.#driver.db.execute(
        sql`delete from ${counters} where key in (
          select key from ${counters} order by expires desc offset ${maxCounters})`
      )
    })().catch(() => {})
  }
}
