import { sql } from 'drizzle-orm'
import type { OpenedVectorStore } from '../ports/vectors.ts'
import { describeFailure } from './connection/failures.ts'
import { createQueryRunner } from './connection/query-runner.ts'
import { openDriver } from './open.ts'
import { PostgresVectors } from './ports/vectors.ts'

/** The statement that creates the table of embeddings, the same as in the migrations of the main database. */
const createTable = sql`create table if not exists vectors (
  collection text not null,
  key text not null,
  hash text not null,
  embedding real[] not null,
  used_at timestamp with time zone not null default now(),
  constraint vectors_collection_key_pk primary key (collection, key)
)`

/** Opens a database for embeddings only. @throws Error whose message contains neither user nor password */
export async function openVectorDatabase (dbUrl: string): Promise<OpenedVectorStore> {
  const driver = await openDriver(dbUrl)
  try {
    await driver.db.execute(createTable)
  } catch (error) {
    await driver.end()
    throw new Error(`The database of smartRouting.dbUrl at ${driver.location} cannot be used: ` +
      `${describeFailure(error)}.`)
  }
  const vectors = new PostgresVectors(createQueryRunner(driver, () => undefined))
  return { vectors, close: async () => { await driver.end() } }
}
