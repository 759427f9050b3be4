import { eq, inArray, sql } from 'drizzle-orm'
import { readMigrationFiles, type MigrationConfig } from 'drizzle-orm/migrator'
import { bigint, pgSchema, text } from 'drizzle-orm/pg-core'
import type { Db } from './driver.ts'

const schema = 'drizzle'
/** The table of the migrations that have run. Not Drizzle's default name, which another program in the same database may use too. */
const migrationsTable = 'tool_hub_migrations'
/** Drizzle's default name, used by early versions of Tool-Hub. */
const formerTable = '__drizzle_migrations'

const tables = pgSchema('information_schema').table('tables', { schema: text('table_schema'), name: text('table_name') })
const columns = { hash: text().notNull(), createdAt: bigint('created_at', { mode: 'number' }) }
const migrationsRun = pgSchema(schema).table(migrationsTable, columns)
const formerMigrationsRun = pgSchema(schema).table(formerTable, columns)

/**
 * What a database has of our tables, by the migrations that ran there. Nothing is written.
 * @param folder of the migration files
 * @returns `none`: it is not a database of Tool-Hub; `older`: some are missing; `newer`: unknown ones have run, those of a newer version
 */
export async function tablesIn (db: Db, folder: string): Promise<'none' | 'older' | 'current' | 'newer'> {
  const { known, run } = await compare(db, folder)
  if (run.length === 0) return 'none'
  if ([...known].some((hash) => !run.includes(hash))) return 'older'
  return run.some((hash) => !known.has(hash)) ? 'newer' : 'current'
}

/** The migrations of a folder, and those that have run; `existing`: the tables in the schema of both programs' records. */
async function compare (
  db: Db,
  folder: string
): Promise<{ known: ReadonlySet<string>, run: string[], existing: ReadonlySet<string | null> }> {
  const known = new Set(readMigrationFiles({ migrationsFolder: folder }).map(({ hash }) => hash))
  // information_schema lists only the tables that this user may read.
  const existing = new Set((await db.select({ name: tables.name }).from(tables).where(eq(tables.schema, schema))).map(({ name }) => name))
  const run = existing.has(migrationsTable)
    ? await db.select().from(migrationsRun)
    : existing.has(formerTable) ? await db.select().from(formerMigrationsRun).where(inArray(formerMigrationsRun.hash, [...known])) : []
  return { known, existing, run: run.map(({ hash }) => hash) }
}

/**
 * Runs the migrations that have not run yet. When none is missing, nothing is written, and the right to create tables is not needed.
 * @param folder of the migration files
 * @param migrate Drizzle's `migrate` for this database
 * @returns whether unknown migrations have run there: those of a newer version
 */
export async function runMigrations (db: Db, folder: string, migrate: (config: MigrationConfig) => Promise<void>): Promise<boolean> {
  const config = { migrationsFolder: folder, migrationsSchema: schema, migrationsTable }
  const { known, run, existing } = await compare(db, folder)
  if (!existing.has(migrationsTable) && existing.has(formerTable)) await adoptFormerTable(db, [...known])
  if ([...known].some((hash) => !run.includes(hash))) await migrate(config)
  return run.some((hash) => !known.has(hash))
}

/** Copies the records of our migrations out of Drizzle's default table. Other records there belong to another program. */
async function adoptFormerTable (db: Db, known: string[]): Promise<void> {
  const ours = await db.select().from(formerMigrationsRun).where(inArray(formerMigrationsRun.hash, known))
  if (ours.length === 0) return
  const target = sql`${sql.identifier(schema)}.${sql.identifier(migrationsTable)}`
  await db.execute(sql`create table ${target} (id serial primary key, hash text not null, created_at bigint)`)
  for (const { hash, createdAt } of ours) await db.execute(sql`insert into ${target} (hash, created_at) values (${hash}, ${createdAt})`)
}
