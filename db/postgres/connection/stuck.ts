import { sql } from 'drizzle-orm'
import { selectRows, type Db } from './driver.ts'
import { timeouts } from './timeouts.ts'

/**
 * Ends the connections of replicas that stopped in the middle of a statement, for example because their machine is
 * frozen or gone: the database waits for the rest of the statement without a limit, and keeps the locks.
 * @param time how long ago the statement began, in ms; it is waiting for its client
 * @returns how many were ended
 */
export async function endStuckConnections (db: Db, time = timeouts.statement): Promise<number> {
  const ended = await selectRows<{ done: boolean }>(db, sql`select pg_terminate_backend(pid) as done
    from pg_stat_activity
    where datname = current_database() and usename = current_user and application_name = 'tool-hub'
      and state = 'active' and wait_event = 'ClientRead' and pid <> pg_backend_pid()
      and state_change < now() - ${time} * interval '1 millisecond'`)
  return ended.filter(({ done }) => done).length
}
