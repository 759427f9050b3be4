import { randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import { isPlainObject } from '../../../schemas/unknown-members.ts'
import { createAccountRestorer, type StoredAccount } from '../../restored-users.ts'
import { selectRows, type DatabaseDriver, type Transaction } from '../connection/driver.ts'
import { safeMessageOf } from '../connection/failures.ts'
import { isDatabaseEmpty } from '../settings/read.ts'
import { lockHead, writeCommit } from '../settings/write.ts'
import { auditEntries } from '../tables.ts'
import { backupTables } from './tables.ts'

/** Number of rows that are written at once. */
const batch = 500

interface RestoreOptions {
  /** When the backup was made, ISO 8601. */
  readonly createdAt: string
  readonly replacesExisting: boolean
  /** Whether tokens and consents of the backup are restored. Has an effect only if the database was empty. */
  readonly restoresTokens: boolean
  /** The rows of a table of the backup, each as JSON text; undefined if the backup does not contain the table. */
  readonly rowsOf: (table: string) => AsyncIterable<string> | undefined
}

/**
 * Restores the tables of a backup, in one transaction. Existing tokens and consents are kept, since those of the backup
 * may have been used or withdrawn; they become invalid if their account is replaced by another
 * (`createAccountRestorer`). Existing entries of the audit log are kept as well, and one is added for the restore.
 * Running replicas reload the settings.
 * @throws Error with one sentence; nothing was changed
 */
export async function restoreTables (
  driver: DatabaseDriver, {
    createdAt, replacesExisting: replace, restoresTokens: keepTokens, rowsOf: linesOf
  }: RestoreOptions
): Promise<void> {
  const id = randomUUID()
  try {
    await driver.db.transaction(async (tx) => {
      await tx.execute(sql.raw('set local statement_timeout = 0'))
      await tx.execute(sql.raw('set local idle_in_transaction_session_timeout = 0'))
      const base = await lockHead(tx, id)
      const wasEmpty = await isDatabaseEmpty(tx)
      if (!replace && !wasEmpty) {
        throw new Error(
          'The database already contains settings, and was not changed. Use --replace to replace them with the backup.'
        )
      }
      const present =
        (await selectRows<{ data: unknown, sealed: string | null }>(tx, sql`select data, sealed from users`))
          .map(toStoredAccount)
      await writeCommit(tx, base, id, new Map(), true)
      for (const { name, part, collection, isSpent, isLog } of backupTables) {
        if (isSpent && !(wasEmpty && keepTokens)) continue
        const lines = linesOf(part)
        if (lines === undefined) continue
        if (isLog) {
          await insertAll(tx, name, lines, await createRowRenumberer(tx, name, linesOf))
          await tx.execute(sql`select setval(pg_get_serial_sequence(${name}, 'number'), (
            select greatest(max(number), 1) from ${sql.identifier(name)}))`)
          continue
        }
        const which = collection === undefined ? sql`` : sql` where collection = ${collection}`
        await tx.execute(sql`delete from ${sql.identifier(name)}${which}`)
        const marked = name === 'users' ? createRowMarker(present, keepTokens && wasEmpty) : (line: string) => line
        await insertAll(tx, name, lines, marked)
      }
      await tx.insert(auditEntries).values({
        id: randomUUID(),
        timestamp: Date.now(),
        username: 'command line',
        action: 'update',
        entity: 'backup',
        name: createdAt,
        data: { secret: JSON.stringify({ after: JSON.stringify({ createdAt, tokensKept: wasEmpty && keepTokens }) }) }
      })
    })
  } catch (error) {
    throw new Error(safeMessageOf(error))
  }
}

/**
 * An account in the database. If any member is encrypted, such as the password, it is treated as a different account.
 */
function toStoredAccount ({ data, sealed }: { data: unknown, sealed: string | null }): StoredAccount {
  const user: unknown = typeof data === 'string' ? JSON.parse(data) : data
  return sealed === null && isPlainObject(user) ? user : {}
}

/** Creates a function that prepares the account in a row of a backup as `createAccountRestorer` does. */
function createRowMarker (present: readonly StoredAccount[], keepsTokens: boolean): (line: string) => string {
  const marks = createAccountRestorer(present, keepsTokens)
  return (line) => {
    const row = JSON.parse(line) as { data: unknown, sealed: string | null, spelling: string | null }
    if (!isPlainObject(row.data)) return line
    const data = marks(row.data, row.sealed !== null)
    // The former `spelling` no longer equals the changed `data`.
    return data === row.data ? line : JSON.stringify({ ...row, data, spelling: null })
  }
}

/** Creates a function that numbers the rows of a backup below the existing rows, which are newer. */
async function createRowRenumberer (
  tx: Transaction, name: string, linesOf: RestoreOptions['rowsOf']
): Promise<(line: string) => string> {
  const [present] = await selectRows<{ first: string | number | null }>(
    tx, sql`select min(number) as first from ${sql.identifier(name)}`
  )
  const first = present?.first ?? null
  if (first === null) return (line) => line
  let last = 0
  for await (const line of linesOf(name) ?? []) last = Math.max(last, (JSON.parse(line) as { number: number }).number)
  return (line) => {
    const row = JSON.parse(line) as { number: number }
    return JSON.stringify({ ...row, number: row.number - last - 1 + Number(first) })
  }
}

async function insertAll (
  tx: Transaction, name: string, lines: AsyncIterable<string>, change: (line: string) => string
): Promise<void> {
  let waiting: string[] = []
  const flush = async (): Promise<void> => {
    const [first] = waiting
    if (first === undefined) return
    const columns = sql.join(Object.keys(JSON.parse(first) as object).map((column) => sql.identifier(column)), sql`, `)
    const table = sql.identifier(name)
    const text = `[${waiting.join(',')}]`
    await tx.execute(
      sql`insert into ${table} (${columns})
        select ${columns} from json_populate_recordset(null::${table}, ${text}::text::json) on conflict do nothing`
    )
    waiting = []
  }
  for await (const line of lines) {
    waiting.push(change(line))
    if (waiting.length >= batch) await flush()
  }
  await flush()
}
