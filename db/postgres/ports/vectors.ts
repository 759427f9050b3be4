import { createHash } from 'node:crypto'
import { and, eq, sql, type SQL } from 'drizzle-orm'
import { unit } from '../../memory/vectors.ts'
import type { Vector, Vectors } from '../../ports.ts'
import type { QueryRunner } from '../connection/query-runner.ts'
import { vectors } from '../tables.ts'

/** Rows for one statement: one may have some 50 KB. */
const batchSize = 100

/** What an index can hold, however long or odd an id is. */
const keyOf = (id: string): string => createHash('sha256').update(id).digest('hex')

/** A list in one parameter, however long it is: of what needs no quotes. */
const listOf = (values: readonly (string | number)[]): string => `{${values.join()}}`
const among = (keys: readonly string[]): SQL => sql`(${vectors.key} = any(${listOf(keys)}::text[]))`

/** Embeddings that all replicas share, in a plain column: the database needs no extension. */
export class PostgresVectors implements Vectors {
  readonly #asks: QueryRunner

  constructor (asks: QueryRunner) {
    this.#asks = asks
  }

  async put (collection: string, added: readonly Vector[]): Promise<void> {
    const rows = [
      ...new Map(
        added.map(({ id, hash, embedding }) => [id, { collection, key: keyOf(id), hash, embedding: [...unit(embedding)] }])
      ).values()
    ]
    for (let at = 0; at < rows.length; at += batchSize) {
      await this.#asks.slow(async (db) => {
        await db
          .insert(vectors)
          .values(rows.slice(at, at + batchSize))
          .onConflictDoUpdate({
            target: [vectors.collection, vectors.key],
            set: { hash: sql`excluded.hash`, embedding: sql`excluded.embedding` }
          })
      })
    }
  }

  async hashes (collection: string, ids: readonly string[]): Promise<Map<string, string>> {
    const byKey = new Map(ids.map((id) => [keyOf(id), id]))
    const rows = await this.#asks.slow(
      async (db) =>
        await db
          .select({ key: vectors.key, hash: vectors.hash })
          .from(vectors)
          .where(and(eq(vectors.collection, collection), among([...byKey.keys()])))
    )
    return new Map(rows.map(({ key, hash }) => [byKey.get(key) ?? '', hash]))
  }

  async nearest (
    collection: string,
    embedding: readonly number[],
    ids: readonly string[],
    count: number
  ): Promise<Array<{ id: string; score: number }>> {
    const byKey = new Map(ids.map((id) => [keyOf(id), id]))
    const score =
      sql<number>`(select sum(one::float8 * other) from unnest(${vectors.embedding}, ${listOf([...unit(embedding)])}::real[]) as pairs (one, other))`.as(
        'score'
      )
    const rows = await this.#asks.slow(
      async (db) =>
        await db
          .select({ key: vectors.key, score })
          .from(vectors)
          .where(
            and(
              eq(vectors.collection, collection),
              among([...byKey.keys()]),
              sql`array_length(${vectors.embedding}, 1) = ${embedding.length}`
            )
          )
          .orderBy(sql`score desc`, vectors.key)
          .limit(count)
    )
    return rows.map(({ key, score }) => ({ id: byKey.get(key) ?? '', score: Number(score) }))
  }

  async keep (collection: string, ids: readonly string[]): Promise<void> {
    await this.#asks.slow(async (db) => {
      await db.delete(vectors).where(and(eq(vectors.collection, collection), sql`not ${among(ids.map(keyOf))}`))
    })
  }
}
