import { and, eq, gt, lt, sql } from 'drizzle-orm'
import { maxRecords, retention, type Grants, type Taken } from '../../ports.ts'
import type { Vault } from '../../store.ts'
import type { QueryRunner } from '../connection/query-runner.ts'
import { openText, sealText } from '../sealed-text.ts'
import { grants } from '../tables.ts'
import { PeriodicCleanup } from './periodic-cleanup.ts'

/** The place that a value is sealed for: it cannot be opened under another hash. */
export const grantPlace = (hash: string): string => `grants/${hash}`

/** Grants shared by all replicas: the caller whose UPDATE comes first takes a grant. */
export class PostgresGrants implements Grants {
  readonly #queries: QueryRunner
  readonly #vault: Vault
  readonly #cleanup: PeriodicCleanup

  /** @param count max grants kept */
  constructor (queries: QueryRunner, vault: Vault, count: number = maxRecords.grants) {
    this.#queries = queries
    this.#vault = vault
    this.#cleanup = new PeriodicCleanup(async () => {
      await queries.slow(async (db) => await db.delete(grants).where(lt(grants.expires, sql`now()`)))
      await queries.slow(
        async (db) =>
          await db.execute(
            sql`delete from ${grants} where hash in (select hash from ${grants} order by taken, expires desc offset ${count})`
          )
      )
    })
  }

  async put (hash: string, family: string, value: unknown, expiresAt: number): Promise<void> {
    const row = { hash, family, ...sealText(this.#vault, JSON.stringify(value), grantPlace(hash)), expires: new Date(expiresAt) }
    await this.#queries.quick(async (db) => { await db.insert(grants).values(row) })
    this.#cleanup.runIfDue()
  }

  async take (hash: string): Promise<Taken | undefined> {
    return await this.#queries.quick(async (db): Promise<Taken | undefined> => {
      // A second caller waits here for the first one's row lock, and then finds the grant taken.
      const found = db
        .select({ hash: grants.hash, taken: sql<boolean>`${grants.taken}`.as('was_taken'), data: grants.data, sealed: grants.sealed })
        .from(grants)
        .where(and(eq(grants.hash, hash), gt(grants.expires, sql`now()`)))
        .for('update')
        .as('found')
      const [was] = await db
        .update(grants)
        .set({
          taken: true,
          data: null,
          sealed: null,
          expires: sql`case when ${found.taken} then ${grants.expires} else now() + ${retention} * interval '1 millisecond' end`
        })
        .from(found)
        .where(eq(grants.hash, found.hash))
        .returning({ family: grants.family, taken: found.taken, data: found.data, sealed: found.sealed })
      if (was === undefined) return undefined
      const { family, taken, data, sealed } = was
      if (taken || data === null) return { first: false, family }
      return { first: true, family, value: JSON.parse(openText(this.#vault, { data, sealed }, grantPlace(hash))) as unknown }
    })
  }
}
