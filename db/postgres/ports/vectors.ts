import { createHash } from 'node:crypto'
import { and, eq, sql, type SQL } from 'drizzle-orm'
import { MemoryVectors } from '../../memory/vectors.ts'
import type { Vector, VectorStore } from '../../ports/vectors.ts'
import { unitVector } from '../../unit-vector.ts'
import { selectRows, type Db } from '../connection/driver.ts'
import type { QueryRunner } from '../connection/query-runner.ts'
import { vectors } from '../tables.ts'

/** Max number of rows per INSERT, and per SELECT of embeddings. A row may have about 50 KB. */
const batchSize = 100

/** Returns the key of an embedding: a hash of its id, which itself may be too long for an index. */
const keyOf = (id: string): string => createHash('sha256').update(id).digest('hex')

/**
 * Returns an array literal of PostgreSQL, so that a list of any length is one parameter. The values must not contain
 * characters that require quotes.
 */
const arrayOf = (values: readonly (string | number)[]): string => `{${values.join()}}`
const hasKeyIn = (keys: readonly string[]): SQL => sql`(${vectors.key} = any(${arrayOf(keys)}::text[]))`

/**
 * Stores the embeddings that all replicas share, in a column of type `real[]`, which needs no extension of the
 * database. If pgvector is installed, the database compares the vectors. Otherwise, this process compares them, and
 * caches the vectors that it has read.
 */
export class PostgresVectors implements VectorStore {
  readonly #queries: QueryRunner
  /** The vectors that were read for comparisons in this process. */
  readonly #cache = new MemoryVectors()
  /** The result of `findPgvector`; undefined before the first call, and after a failure. */
  #pgvectorSchema: Promise<string | undefined> | undefined

  constructor (queries: QueryRunner) {
    this.#queries = queries
  }

  async put (collection: string, added: readonly Vector[]): Promise<void> {
    const rows = [
      ...new Map(
        added.map(
          ({ id, hash, embedding }) => [id, { collection, key: keyOf(id), hash, embedding: [...unitVector(embedding)] }]
        )
      ).values()
    ]
    for (let at = 0; at < rows.length; at += batchSize) {
      await this.#queries.runSlow(async (db) => {
        await db
          .insert(vectors)
          .values(rows.slice(at, at + batchSize))
          .onConflictDoUpdate({
            target: [vectors.collection, vectors.key],
            set: { hash: sql`excluded.hash`, embedding: sql`excluded.embedding`, usedAt: sql`now()` }
          })
      })
    }
  }

  async findHashes (collection: string, ids: readonly string[]): Promise<Map<string, string>> {
    const byKey = new Map(ids.map((id) => [keyOf(id), id]))
    const rows = await this.#hashes(collection, [...byKey.keys()])
    return new Map([...rows].map(([key, hash]) => [byKey.get(key) ?? '', hash]))
  }

  async findNearest (
    collection: string,
    embedding: readonly number[],
    ids: readonly string[],
    count: number
  ): Promise<Array<{ id: string, score: number }>> {
    const unit = unitVector(embedding)
    const byKey = new Map(ids.map((id) => [keyOf(id), id]))
    this.#pgvectorSchema ??= this.#queries.runSlow(findPgvector).catch((error: unknown) => {
      this.#pgvectorSchema = undefined
      throw error
    })
    const schema = await this.#pgvectorSchema
    const found = schema === undefined
      ? await this.#nearestInProcess(collection, unit, [...byKey.keys()], count)
      : await this.#nearestInDatabase(schema, collection, unit, [...byKey.keys()], count)
    return found.map(({ key, score }) => ({ id: byKey.get(key) ?? '', score }))
  }

  async markUsed (collection: string, ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return
    await this.#queries.runSlow(async (db) => {
      await db.update(vectors).set({ usedAt: sql`now()` })
        .where(and(eq(vectors.collection, collection), hasKeyIn(ids.map(keyOf))))
    })
  }

  async removeUnused (age: number, count: number): Promise<number> {
    return await this.#queries.runSlow(async (db) => {
      const isOld = sql`${vectors.usedAt} < now() - ${age} * interval '1 millisecond'`
      // `isOld` is also a condition of the DELETE: PostgreSQL then checks it again on the locked row, so that a vector
      // that was marked as used meanwhile stays.
      const removed = await db
        .delete(vectors)
        .where(and(isOld, sql`(${vectors.collection}, ${vectors.key}) in (
          select ${vectors.collection}, ${vectors.key} from ${vectors} where ${isOld} limit ${count}
        )`))
        .returning({ key: vectors.key })
      return removed.length
    })
  }

  async #hashes (collection: string, keys: readonly string[]): Promise<Map<string, string>> {
    const rows = await this.#queries.runSlow(
      async (db) =>
        await db
          .select({ key: vectors.key, hash: vectors.hash })
          .from(vectors)
          .where(and(eq(vectors.collection, collection), hasKeyIn(keys)))
    )
    return new Map(rows.map(({ key, hash }) => [key, hash]))
  }

  /** Finds the nearest vectors with pgvector, to whose type `vector` a `real[]` can be cast. */
  async #nearestInDatabase (
    schema: string,
    collection: string,
    unit: Float32Array,
    keys: readonly string[],
    count: number
  ): Promise<Array<{ key: string, score: number }>> {
    const [type, operator] = [sql`${sql.identifier(schema)}.vector`, sql`operator(${sql.identifier(schema)}.<#>)`]
    // The operator returns the negative dot product, which for unit vectors is the negative cosine.
    const rows = await this.#queries.runSlow(
      async (db) =>
        await db
          .select({
            key: sql<string>`key`,
            score: sql<number>`-(embedding::${type} ${operator} ${arrayOf([...unit])}::real[]::${type})`.as('score')
          })
          // A subquery, so that only vectors of the same length are cast.
          .from(sql`(
            select key, embedding from ${vectors}
            where collection = ${collection} and key = any(${arrayOf(keys)}::text[])
              and array_length(embedding, 1) = ${unit.length}
            offset 0
          ) as comparable`)
          .orderBy(sql`score desc, key`)
          .limit(count)
    )
    return rows.map(({ key, score }) => ({ key, score: Number(score) }))
  }

  /** Finds the nearest vectors in this process. Of cached vectors, only the hashes are read from the database. */
  async #nearestInProcess (
    collection: string,
    unit: Float32Array,
    keys: readonly string[],
    count: number
  ): Promise<Array<{ key: string, score: number }>> {
    const stored = await this.#hashes(collection, keys)
    const known = await this.#cache.findHashes(collection, [...stored.keys()])
    const unread = [...stored].flatMap(([key, hash]) => known.get(key) === hash ? [] : [key])
    for (let at = 0; at < unread.length; at += batchSize) {
      await this.#cache.put(
        collection, await this.#queries.runSlow(async (db) =>
          await readVectors(db, collection, unread.slice(at, at + batchSize)))
      )
    }
    return (await this.#cache.findNearest(collection, [...unit], [...stored.keys()].sort(), count))
      .map(({ id, score }) => ({ key: id, score }))
  }
}

/** Reads vectors by their keys. Their numbers are transferred as bytes, since parsing thousands as text is slow. */
async function readVectors (db: Db, collection: string, keys: readonly string[]): Promise<Vector[]> {
  const rows = await db
    .select({
      key: vectors.key,
      hash: vectors.hash,
      bytes: sql<string>`encode(array_send(${vectors.embedding}), 'base64')`
    })
    .from(vectors)
    .where(and(eq(vectors.collection, collection), hasKeyIn(keys)))
  return rows.map(({ key, hash, bytes }) => ({ id: key, hash, embedding: numbersOf(Buffer.from(bytes, 'base64')) }))
}

/**
 * Parses a `real[]` in the format of `array_send`: a header of 20 bytes, then for each number its length (4 bytes) and
 * its value (4 bytes).
 */
function numbersOf (bytes: Buffer): number[] {
  const numbers: number[] = []
  for (let at = 24; at + 4 <= bytes.length; at += 8) numbers.push(bytes.readFloatBE(at))
  return numbers
}

/** Returns the schema of pgvector, and first tries to install it if possible; undefined if it is not installed. */
async function findPgvector (db: Db): Promise<string | undefined> {
  const findSchema = async (): Promise<string | undefined> => {
    const found = await selectRows<{ name: string }>(db, sql`
      select nspname as name from pg_extension join pg_namespace on pg_namespace.oid = extnamespace
      where extname = 'vector'
    `)
    return found[0]?.name
  }
  const schema = await findSchema()
  if (schema !== undefined) return schema
  const available = await selectRows(db, sql`select name from pg_available_extensions where name = 'vector'`)
  if (available.length === 0) return undefined
  // A failure is ignored, since another replica may install the extension at the same time, or the user may not be
  // allowed to. The next query shows whether it is installed.
  await db.execute(sql`create extension if not exists vector`).then(() => {}, () => {})
  return await findSchema()
}
