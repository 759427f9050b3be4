import { createHash } from 'node:crypto'
import { and, eq, sql, type SQL } from 'drizzle-orm'
import type { Vector, Vectors } from '../../ports.ts'
import { unitVector } from '../../unit-vector.ts'
import type { QueryRunner } from '../connection/query-runner.ts'
import { vectors } from '../tables.ts'

/** Rows per INSERT; a row may have about 50 KB. */
const batchSize = 100

/** A key of fixed length for the index, since ids may be of any length. */
const keyOf = (id: string): string => createHash('sha256').update(id).digest('hex')

/** An array literal, so that a list of any length is one parameter. The values must need no quotes. */
const arrayOf = (values: readonly (string | number)[]): string => `{${values.join()}}`
const hasKeyIn = (keys: readonly string[]): SQL => sql`(${vectors.key} = any(${arrayOf(keys)}::text[]))`

/** Embeddings shared by all replicas, in a column of type `real[]`: the database needs no extension. */
export class PostgresVectors implements Vectors {
  readonly #queries: QueryRunner

  constructor (queries: QueryRunner) {
    this.#queries = queries
  }

  async put (collection: string, added: readonly Vector[]): Promise<void> {
    const rows = [
      ...new Map(
        added.map(({ id, hash, embedding }) => [id, { collection, key: keyOf(id), hash, embedding: [...unitVector(embedding)] }])
      ).values()
    ]
    for (let at = 0; at < rows.length; at += batchSize) {
      await this.#queries.slow(async (db) => {
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
    const rows = await this.#queries.slow(
      async (db) =>
        await db
          .select({ key: vectors.key, hash: vectors.hash })
          .from(vectors)
          .where(and(eq(vectors.collection, collection), hasKeyIn([...byKey.keys()])))
    )
    return new Map(rows.map(({ key, hash }) => [byKey.get(key) ?? '', hash]))
  }

  async nearest (
    collection: string,
    embedding: readonly number[],
    ids: readonly string[],
    count: number
  ): Promise<Array<{ id: string, score: number }>> {
    const byKey = new Map(ids.map((id) => [keyOf(id), id]))
    const query = sql`${arrayOf([...unitVector(embedding)])}::real[]`
    // The dot product of two unit vectors is their cosine.
    const score = sql<number>`(
      select sum(one::float8 * other) from unnest(${vectors.embedding}, ${query}) as pairs (one, other)
    )`.as('score')
    const rows = await this.#queries.slow(
      async (db) =>
        await db
          .select({ key: vectors.key, score })
          .from(vectors)
          .where(
            and(
              eq(vectors.collection, collection),
              hasKeyIn([...byKey.keys()]),
              sql`array_length(${vectors.embedding}, 1) = ${embedding.length}`
            )
          )
          .orderBy(sql`score desc`, vectors.key)
          .limit(count)
    )
    return rows.map(({ key, score }) => ({ id: byKey.get(key) ?? '', score: Number(score) }))
  }

  async keep (collection: string, ids: readonly string[]): Promise<void> {
    await this.#queries.slow(async (db) => {
      await db.delete(vectors).where(and(eq(vectors.collection, collection), sql`not ${hasKeyIn(ids.map(keyOf))}`))
    })
  }
}
