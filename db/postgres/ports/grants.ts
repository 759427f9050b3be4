import { and, eq, gt, lt, sql } from 'drizzle-orm'
import { most, remembered, type Grants, type Taken } from '../../ports.ts'
import type { Vault } from '../../store.ts'
import { Sweep, type QueryRunner } from '../connection/query-runner.ts'
import { grants } from '../tables.ts'

/** Where a value is sealed for: it opens under no other hash. */
const placeOf = (hash: string): string => `grants/${hash}`

/** Grants that all replicas share: whose update comes first, takes one. */
export class PostgresGrants implements Grants {
  readonly #asks: QueryRunner
  readonly #vault: Vault
  readonly #sweep: Sweep

  /** @param count how many are kept */
  constructor (asks: QueryRunner, vault: Vault, count: number = most.grants) {
    this.#asks = asks
    this.#vault = vault
    this.#sweep = new Sweep(async () => {
      await asks.slow(async (db) => await db.delete(grants).where(lt(grants.expires, sql`now()`)))
      await asks.slow(
        async (db) =>
          await db.execute(
            sql`delete from ${grants} where hash in (select hash from ${grants} order by taken, expires desc offset ${count})`
          )
      )
    })
  }

  async put (hash: string, family: string, value: unknown, expiresAt: number): Promise<void> {
    // The space keeps the last characters of the value out of the mask that is shown of it.
    const { value: data, sealed } = this.#vault.hide({ secret: `${JSON.stringify(value)} ` }, placeOf(hash))
    await this.#asks.quick(async (db) => { await db.insert(grants).values({ hash, family, data, sealed, expires: new Date(expiresAt) }) })
    this.#sweep.pass()
  }

  async take (hash: string): Promise<Taken | undefined> {
    return await this.#asks.quick(async (db): Promise<Taken | undefined> => {
      // Whoever comes second waits here for the first, and then finds it taken.
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
          expires: sql`case when ${found.taken} then ${grants.expires} else now() + ${remembered} * interval '1 millisecond' end`
        })
        .from(found)
        .where(eq(grants.hash, found.hash))
        .returning({ family: grants.family, taken: found.taken, data: found.data, sealed: found.sealed })
      if (was === undefined) return undefined
      if (was.taken || was.data === null) return { first: false, family: was.family }
      return {
        first: true,
        family: was.family,
        value: JSON.parse(this.#vault.reveal(was.data, was.sealed, placeOf(hash)).secret) as unknown
      }
    })
  }
}
