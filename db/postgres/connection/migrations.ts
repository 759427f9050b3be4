import { eq, inArray, sql } from 'drizzle-orm'
import { readMigrationFiles, type MigrationConfig } from 'drizzle-orm/migrator'
import { bigint, pgSchema, text } from 'drizzle-orm/pg-core'
import type { Db } from './driver.ts'

const schema = 'drizzle'
/** Not Drizzle's own choice: another program in the same database would take our migrations for its own, and we its. */
const own = 'tool_hub_migrations'
/** Drizzle's own choice, and ours at first. */
const early = '__drizzle_migrations'

const tables = pgSchema('information_schema').table('tables', { schema: text('table_schema'), name: text('table_name') })
const columns = { hash: text().notNull(), createdAt: bigint('created_at', { mode: 'number' }) }
const ownNotes = pgSchema(schema).table(own, columns)
const earlyNotes = pgSchema(schema).table(early, columns)

/**
 * Runs the migrations that were not run yet. Where none is missing, nothing is written, and the right to make tables is not needed.
 * @param folder where the migrations are
 * @param run Drizzle's `migrate`
 * @returns whether migrations ran there that we do not know: those of a newer version
 */
export async function migrateBy (db: Db, folder: string, run: (config: MigrationConfig) => Promise<void>): Promise<boolean> {
  const config = { migrationsFolder: folder, migrationsSchema: schema, migrationsTable: own }
  const known = new Set(readMigrationFiles(config).map(({ hash }) => hash))
  // Only those that we may read are listed there.
  const found = new Set((await db.select({ name: tables.name }).from(tables).where(eq(tables.schema, schema))).map(({ name }) => name))
  if (!found.has(own) && found.has(early)) await takeOver(db, [...known])
  const noted = found.has(own) ? (await db.select().from(ownNotes)).map(({ hash }) => hash) : []
  if ([...known].some((hash) => !noted.includes(hash))) await run(config)
  return noted.some((hash) => !known.has(hash))
}

/** Takes over which of our migrations were noted under Drizzle's own name. Others that are noted there are another program's. */
async function takeOver (db: Db, known: string[]): Promise<void> {
  const ours = await db.select().from(earlyNotes).where(inArray(earlyNotes.hash, known))
  if (ours.length === 0) return
  const target = sql`${sql.identifier(schema)}.${sql.identifier(own)}`
  await db.execute(sql`create table ${target} (id serial primary key, hash text not null, created_at bigint)`)
  for (const { hash, createdAt } of ours) await db.execute(sql`insert into ${target} (hash, created_at) values (${hash}, ${createdAt})`)
}
