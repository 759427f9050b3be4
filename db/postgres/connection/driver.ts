import type { ExtractTablesWithRelations, SQL } from 'drizzle-orm'
import type { PgDatabase, PgQueryResultHKT, PgTransaction } from 'drizzle-orm/pg-core'

type NoSchema = Record<string, never>
export type Db = PgDatabase<PgQueryResultHKT, NoSchema>
export type Transaction = PgTransaction<PgQueryResultHKT, NoSchema, ExtractTablesWithRelations<NoSchema>>

/** A PostgreSQL database, on a server or embedded in this process. Errors are those of the underlying library. */
export interface DatabaseDriver {
  /** The database's address for messages, without user and password. */
  readonly location: string
  /** Whether the database runs in this process, without a server. */
  readonly isEmbedded: boolean
  /** The current connections. Read this property for each use, since `reconnect` replaces it. */
  readonly db: Db
  /**
   * Runs the migrations in a folder that have not run yet. If several replicas start at once, one runs them.
   * @param onWait called when another replica is running them; the call then waits for it
   * @returns whether a newer version has run migrations that this one does not know
   */
  migrate: (folder: string, onWait: () => void) => Promise<boolean>
  /**
   * Listens for notifications on the channel, until the connection breaks.
   * @param onLost called once when the connection breaks
   * @returns a function that stops listening, without calling `onLost`
   */
  listen: (onNotification: (payload: string) => void, onLost: () => void) => Promise<() => void>
  /** Drops all connections and opens new ones; pending queries are rejected. */
  reconnect: () => void
  /** Closes the database. Never throws. */
  end: () => Promise<void>
}

/** The channel of NOTIFY by which replicas announce commits to each other. */
export const notificationChannel = 'tool_hub'

/** Timeout for opening a connection, in s. */
export const connectTimeoutSeconds = 5

/** The rows of a statement, whose result differs between postgres.js and PGlite. */
export async function selectRows<Row> (db: Db, statement: SQL): Promise<Row[]> {
  const result: unknown = await db.execute(statement)
  return (Array.isArray(result) ? result : (result as { rows: unknown[] }).rows) as Row[]
}
