import { sql } from 'drizzle-orm'
import { selectRows, type DatabaseDriver } from '../connection/driver.ts'
import { safeMessageOf } from '../connection/failures.ts'
import { isDatabaseEmpty, settingsLostError, readHead } from '../settings/read.ts'
import { tablesInBackup } from './tables.ts'

/** Number of rows that are read at a time. */
const batchSize = 1_000

/**
 * Reads all tables that a backup contains (`tablesInBackup`), in one consistent snapshot even while gateways write.
 * @param write receives the name of a part of the backup and some rows of the part, each as one line of JSON. The first
 *   call for a part has no rows
 * @throws Error when the database is empty or cannot be read, or when `write` throws
 */
export async function dumpTables (
  driver: DatabaseDriver, write: (part: string, lines: readonly string[]) => Promise<void>
): Promise<void> {
  try {
    await driver.db.transaction(async (tx) => {
      if (await readHead(tx) === undefined) {
        throw await isDatabaseEmpty(tx)
          ? new Error(`The database at ${driver.location} is empty: nothing has been stored in it.`)
          : settingsLostError()
      }
      for (const { name, part, collection } of tablesInBackup) {
        const condition = collection === undefined ? sql`` : sql`where collection = ${sql.raw(`'${collection}'`)}`
        await tx.execute(
          sql`declare backup no scroll cursor for select row_to_json(t)::text as line
            from ${sql.identifier(name)} t ${condition}`
        )
        await write(part, [])
        for (;;) {
          const found = await selectRows<{ line: string }>(tx, sql.raw(`fetch ${batchSize} from backup`))
          if (found.length === 0) break
          await write(part, found.map(({ line }) => line))
        }
        await tx.execute(sql`close backup`)
      }
    }, { isolationLevel: 'repeatable read', accessMode: 'read only' })
  } catch (error) {
    throw new Error(safeMessageOf(error))
  }
}
