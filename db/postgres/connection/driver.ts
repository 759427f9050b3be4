import type { ExtractTablesWithRelations } from 'drizzle-orm'
import type { PgDatabase, PgQueryResultHKT, PgTransaction } from 'drizzle-orm/pg-core'

type None = Record<string, never>
export type Db = PgDatabase<PgQueryResultHKT, None>
export type Transaction = PgTransaction<PgQueryResultHKT, None, ExtractTablesWithRelations<None>>

/** A connection to a PostgreSQL, somewhere or in this process, for as long as it is asked. Errors come as the driver throws them. */
export interface Driver {
  /** Where the database is, for a person: never with a user or password. */
  readonly where: string
  /** Always asked for anew: `reset` puts another one in its place. */
  readonly db: Db
  /**
   * Runs the migrations of a folder that were not run yet; of several replicas, one does.
   * @param held called when another replica is at it, and is waited for
   * @returns whether a newer version has run others
   */
  migrate: (folder: string, held: () => void) => Promise<boolean>
  /**
   * Hears what is notified on the channel, until the connection breaks: then `lost` is called, once.
   * @returns the function that ends it, without `lost`
   */
  listen: (hear: (payload: string) => void, lost: () => void) => Promise<() => void>
  /** Drops all connections: what waits for an answer that does not come is rejected. */
  reset: () => void
  /** Never throws. */
  end: () => Promise<void>
}

/** What replicas notify each other on. */
export const channel = 'tool_hub'

/** How long one statement may take, and a transaction may stand idle, in ms. */
export const statementTimeout = 10_000
/** How long making a connection may take, in s. */
export const connectTimeout = 5
