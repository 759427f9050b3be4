import { createHash } from 'node:crypto'
import { eq, lt, sql } from 'drizzle-orm'
import { MemoryCounters } from '../../memory/counters.ts'
import type { Counters } from '../../store.ts'
import type { DatabaseDriver } from '../connection/driver.ts'
import { counters } from '../tables.ts'

/** Min time between two cleanups of expired counters, in ms. */
const cleanupInterval = 60_000
/** Max counters; beyond, those that expire first are removed. */
const maxCounters = 100_000

/** Keys are stored as hashes: they may contain usernames and addresses, and may have any length. */
const hash = (key: string): string => createHash('sha256').update(key).digest('base64url')

/**
 * Counters shared by all replicas. While the database is unavailable, each replica counts alone: the limits then apply
 * per replica.
 */
export class PostgresCounters implements Counters {
  readonly #driver: DatabaseDriver
  readonly #isUnavailable: () => boolean
  readonly #fallback = new MemoryCounters(maxCounters)
  #lastCleanup = Date.now()

  constructor (driver: DatabaseDriver, isUnavailable: () => boolean) {
    this.#driver = driver
    this.#isUnavailable = isUnavailable
  }

  async hit (key: string, window: number): Promise<{ count: number, left: number }> {
    if (this.#isUnavailable()) return await this.#fallback.hit(key, window)
    const expires = sql`now() + ${window} * interval '1 millisecond'`
    const isExpired = sql`${counters.expires} <= now()`
    try {
      const [found] = await this.#driver.db
        .insert(counters)
        .values({ key: hash(key), count: 1, expires })
        .onConflictDoUpdate({
          target: counters.key,
          set: {
            count: sql`case when ${isExpired} then 1 else ${counters.count} + 1 end`,
            expires: sql`case when ${isExpired} then excluded.expires else ${counters.expires} end`
          }
        })
        .returning(
          { count: counters.count, left: sql<string>`ceil(extract(epoch from ${counters.expires} - now()) * 1000)` }
        )
      if (Date.now() - this.#lastCleanup > cleanupInterval) this.#cleanUp()
      return { count: found?.count ?? 1, left: Number(found?.left ?? window) }
    } catch {
      return await this.#fallback.hit(key, window)
    }
  }

  async reset (key: string): Promise<void> {
    await this.#fallback.reset(key)
    if (!this.#isUnavailable()) {
      await this.#driver.db.delete(counters).where(eq(counters.key, hash(key))).catch(() => {})
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
