import { createHash } from 'node:crypto'
import { eq, lt, sql } from 'drizzle-orm'
import { MemoryCounters } from '../../counters.ts'
import type { Counters } from '../../store.ts'
import type { Driver } from '../connection/driver.ts'
import { counters } from '../tables.ts'

/** How often ended counts are swept away, in ms, and how many of the others stay: those that end first go first. */
const sweepEvery = 60_000
const most = 100_000

/** A key may hold a name or an address of somebody: the table need not know it, nor how long it is. */
const hash = (key: string): string => createHash('sha256').update(key).digest('base64url')

/** Counts that all replicas share. While the database is away each replica counts for itself: limits get wider, and do not fall. */
export class PostgresCounters implements Counters {
  readonly #driver: Driver
  readonly #isAway: () => boolean
  readonly #own = new MemoryCounters(most)
  #swept = Date.now()

  constructor (driver: Driver, isAway: () => boolean) {
    this.#driver = driver
    this.#isAway = isAway
  }

  async hit (key: string, window: number): Promise<{ count: number, left: number }> {
    if (this.#isAway()) return await this.#own.hit(key, window)
    const ends = sql`now() + ${window} * interval '1 millisecond'`
    const over = sql`${counters.expires} <= now()`
    try {
      const [found] = await this.#driver.db
        .insert(counters)
        .values({ key: hash(key), count: 1, expires: ends })
        .onConflictDoUpdate({
          target: counters.key,
          set: {
            count: sql`case when ${over} then 1 else ${counters.count} + 1 end`,
            expires: sql`case when ${over} then excluded.expires else ${counters.expires} end`
          }
        })
        .returning({ count: counters.count, left: sql<string>`ceil(extract(epoch from ${counters.expires} - now()) * 1000)` })
      if (Date.now() - this.#swept > sweepEvery) this.#sweep()
      return { count: found?.count ?? 1, left: Number(found?.left ?? window) }
    } catch {
      return await this.#own.hit(key, window)
    }
  }

  async reset (key: string): Promise<void> {
    await this.#own.reset(key)
    if (!this.#isAway()) await this.#driver.db.delete(counters).where(eq(counters.key, hash(key))).catch(() => {})
  }

  #sweep (): void {
    this.#swept = Date.now()
    void (async () => {
      await this.#driver.db.delete(counters).where(lt(counters.expires, sql`now()`))
      await this.#driver.db.execute(
        sql`delete from ${counters} where key in (select key from ${counters} order by expires desc offset ${most})`
      )
    })().catch(() => {})
  }
}
