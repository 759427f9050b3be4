import { lt, sql } from 'drizzle-orm'
import { maxRecords, type StateUse, type UsedStates } from '../../ports.ts'
import type { QueryRunner } from '../connection/query-runner.ts'
import { usedStates } from '../tables.ts'
import { PeriodicCleanup } from './periodic-cleanup.ts'

/** The states that were used on any replica: the caller whose INSERT comes first is the first. */
export class PostgresUsedStates implements UsedStates {
  readonly outlivesProcess = true
  readonly #queries: QueryRunner
  readonly #cleanup: PeriodicCleanup

  constructor (queries: QueryRunner, count: number = maxRecords.usedStates) {
    this.#queries = queries
    this.#cleanup = new PeriodicCleanup(async () => {
      await queries.slow(async (db) => await db.delete(usedStates).where(lt(usedStates.expires, sql`now()`)))
      await queries.slow(
        async (db) =>
          await db.execute(
            sql`delete from ${usedStates} where hash in (select hash from ${usedStates} order by used desc offset ${count})`
          )
      )
    })
  }

  async use (hash: string, answers: string, expiresAt: number): Promise<StateUse> {
    const [first] = await this.#queries.quick(
      async (db) => await db
        .insert(usedStates)
        .values({ hash, answers, expires: new Date(expiresAt) })
        // Changes nothing, but returns the row that is there.
        .onConflictDoUpdate({ target: usedStates.hash, set: { hash: sql`excluded.hash` } })
        .returning({
          answers: usedStates.answers,
          age: sql`greatest(0, extract(epoch from now() - ${usedStates.used}) * 1000)`.mapWith(Number)
        })
    )
    this.#cleanup.runIfDue()
    return first ?? { answers, age: 0 }
  }
}
