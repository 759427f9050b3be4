import { sql } from 'drizzle-orm'
import { selectRows, type DatabaseDriver } from '../connection/driver.ts'
import { safeMessageOf } from '../connection/failures.ts'
import { isDatabaseEmpty, settingsLostError, readHead } from '../settings/read.ts'
import { tablesInBackup } from './tables.ts'

/** Number of rows that are read at once. */
const batchSize = 1_000

/**
 * Reads all tables of a backup in one consistent snapshot, also while gateways write.
 * @param write receives the name of a part of the backup and some of its rows, each as one line of JSON. It is called
 *   several times for a part, at least once
 * @throws Error with one sentence
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
