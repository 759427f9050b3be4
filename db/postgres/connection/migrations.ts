import { eq } from 'drizzle-orm'
import { readMigrationFiles, type MigrationConfig } from 'drizzle-orm/migrator'
import { bigint, pgSchema, text } from 'drizzle-orm/pg-core'
import type { Db } from './driver.ts'

const schema = 'drizzle'
/** The table of completed migrations. Not Drizzle's default name, which another program in the database may use. */
const migrationsTable = 'tool_hub_migrations'

const tables =
  pgSchema('information_schema').table('tables', { schema: text('table_schema'), name: text('table_name') })
const migrationsRun = pgSchema(schema)
  .table(migrationsTable, { hash: text().notNull(), createdAt: bigint('created_at', { mode: 'number' }) })

/**
 * Compares the completed migrations of a database with those in a folder. Nothing is written.
 * @param folder the folder of the migration files
 * @returns `none` if no migration has run, so that it is not a database of Tool-Hub; `older` if some in the folder have
 *   not run; `newer` if all have run, and also migrations of a newer version; otherwise `current`
 */
export async function migrationStateOf (db: Db, folder: string): Promise<'none' | 'older' | 'current' | 'newer'> {
  const { known, run } = await compareMigrations(db, folder)
  if (run.length === 0) return 'none'
  if ([...known].some((hash) => !run.includes(hash))) return 'older'
  return run.some((hash) => !known.has(hash)) ? 'newer' : 'current'
}

/** Returns the hashes of the migrations in a folder (`known`), and of the migrations that have run (`run`). */
async function compareMigrations (db: Db, folder: string): Promise<{ known: ReadonlySet<string>, run: string[] }> {
  const known = new Set(readMigrationFiles({ migrationsFolder: folder }).map(({ hash }) => hash))
  // information_schema lists only the tables that this user may read.
  const existing = await db.select({ name: tables.name }).from(tables).where(eq(tables.schema, schema))
  const run = existing.some(({ name }) => name === migrationsTable) ? await db.select().from(migrationsRun) : []
  return { known, run: run.map(({ hash }) => hash) }
}

/**
 * Runs the migrations that have not run yet. If all have run, nothing is written, and no right to create tables is
 * required.
 * @param folder the folder of the migration files
 * @param migrate Drizzle's `migrate` for this database
 * @returns whether migrations of a newer version have run, which are not in the folder
 */
export async function runMigrations (
  db: Db, folder: string, migrate: (config: MigrationConfig) => Promise<void>
): Promise<boolean> {
  const { known, run } = await compareMigrations(db, folder)
  if ([...known].some((hash) => !run.includes(hash))) {
    await migrate({ migrationsFolder: folder, migrationsSchema: schema, migrationsTable })
  }
  return run.some((hash) => !known.has(hash))
}
