import type { ExtractTablesWithRelations, SQL } from 'drizzle-orm'
import type { PgDatabase, PgQueryResultHKT, PgTransaction } from 'drizzle-orm/pg-core'

type NoSchema = Record<string, never>
export type Db = PgDatabase<PgQueryResultHKT, NoSchema>
export type Transaction = PgTransaction<PgQueryResultHKT, NoSchema, ExtractTablesWithRelations<NoSchema>>

/**
 * A PostgreSQL database, on a server or embedded in this process. Its methods throw errors of the underlying library.
 */
export interface DatabaseDriver {
  /** The address of the database, for messages: without user and password. */
  readonly location: string
  /** Whether the database runs in this process, without a server. */
  readonly isEmbedded: boolean
  /** Drizzle on the current connections. Read this member anew for each use, since `reconnect` replaces its value. */
  readonly db: Db
  /**
   * Runs the migrations in a folder that have not run yet. If several replicas start at once, one runs them.
   * @param onWait called if another replica is running migrations; the method then waits until they have ended
   * @returns whether a newer version of Tool-Hub has run migrations that are not in the folder
   */
  migrate: (folder: string, onWait: () => void) => Promise<boolean>
  /**
   * Listens for notifications on `notificationChannel`, until the connection breaks.
   * @param onLost called once, if the connection breaks
   * @returns a function that stops listening, without calling `onLost`
   */
  listen: (onNotification: (payload: string) => void, onLost: () => void) => Promise<() => void>
  /** Drops all connections, so that their pending queries are rejected, and uses new ones from then on. */
  reconnect: () => void
  /** Closes the database. Never throws. */
  end: () => Promise<void>
}

/** The channel on which replicas announce their commits to each other with NOTIFY. */
export const notificationChannel = 'tool_hub'

/** Timeout for opening a connection, in s. */
export const connectTimeoutSeconds = 5

/** Runs a statement and returns its rows, which postgres.js and PGlite return in different forms. */
export async function selectRows<Row> (db: Db, statement: SQL): Promise<Row[]> {
  const result: unknown = await db.execute(statement)
  return (Array.isArray(result) ? result : (result as { rows: unknown[] }).rows) as Row[]
}
