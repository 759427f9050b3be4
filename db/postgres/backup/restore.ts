import { randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import { isPlainObject } from '../../../schemas/unknown-members.ts'
import { createAccountRestorer, type StoredAccount } from '../../restored-users.ts'
import { selectRows, type DatabaseDriver, type Transaction } from '../connection/driver.ts'
import { safeMessageOf } from '../connection/failures.ts'
import { isDatabaseEmpty } from '../settings/read.ts'
import { lockHead, writeCommit } from '../settings/write.ts'
import { auditEntries } from '../tables.ts'
import { tablesInBackup } from './tables.ts'

/** Max number of rows that are written at a time. */
const batchSize = 500

interface RestoreOptions {
  /** The time at which the backup was made, in ISO 8601. */
  readonly createdAt: string
  /** Whether the backup may replace existing settings. */
  readonly replacesExisting: boolean
  /** Whether tokens and consents of the backup are restored. Only has an effect if the database is empty. */
  readonly restoresTokens: boolean
  /** Returns the rows of a part of the backup, each as JSON text; undefined if the backup does not contain the part. */
  readonly rowsOf: (part: string) => AsyncIterable<string> | undefined
}

/**
 * Replaces the settings and other tables by those of a backup, in one transaction. Existing tokens and consents are
 * kept, and become invalid if the account of their user changes (`createAccountRestorer`). Tokens and consents of the
 * backup are restored only with `restoresTokens`, since they may have been used or withdrawn after the backup. The
 * audit log keeps its entries, and gets those of the backup and one about the restore. Running replicas reload the
 * settings.
 * @throws Error whose message contains no SQL and no values; nothing is changed then
 */
export async function restoreTables (
  driver: DatabaseDriver, { createdAt, replacesExisting, restoresTokens, rowsOf }: RestoreOptions
): Promise<void> {
  const id = randomUUID()
  try {
    await driver.db.transaction(async (tx) => {
      await tx.execute(sql.raw('set local statement_timeout = 0'))
      await tx.execute(sql.raw('set local idle_in_transaction_session_timeout = 0'))
      const base = await lockHead(tx, id)
      const wasEmpty = await isDatabaseEmpty(tx)
      const keepsTokens = restoresTokens && wasEmpty
      if (!replacesExisting && !wasEmpty) {
        throw new Error(
          'The database already contains settings, and was not changed. Use --replace to replace them with the backup.'
        )
      }
      const present =
        (await selectRows<{ data: unknown, sealed: string | null }>(tx, sql`select data, sealed from users`))
          .map(toStoredAccount)
      await writeCommit(tx, base, id, new Map(), true)
      for (const { name, part, collection, isRevocable, isLog } of tablesInBackup) {
        if (isRevocable && !keepsTokens) continue
        const lines = rowsOf(part)
        if (lines === undefined) continue
        if (isLog) {
          await insertAll(tx, name, lines, await createRowRenumberer(tx, name, rowsOf))
          await tx.execute(sql`select setval(pg_get_serial_sequence(${name}, 'number'), (
            select greatest(max(number), 1) from ${sql.identifier(name)}))`)
          continue
        }
        const condition = collection === undefined ? sql`` : sql` where collection = ${collection}`
        await tx.execute(sql`delete from ${sql.identifier(name)}${condition}`)
        const change = name === 'users' ? createUserRowRestorer(present, keepsTokens) : (line: string) => line
        await insertAll(tx, name, lines, change)
      }
      await tx.insert(auditEntries).values({
        id: randomUUID(),
        timestamp: Date.now(),
        username: 'command line',
        action: 'update',
        entity: 'backup',
        name: createdAt,
        data: { secret: JSON.stringify({ after: JSON.stringify({ createdAt, tokensKept: keepsTokens }) }) }
      })
    })
  } catch (error) {
    throw new Error(safeMessageOf(error))
  }
}

/**
 * Returns the account in a row; an empty object if a member of the account, such as the password, is encrypted, and
 * cannot be compared.
 */
function toStoredAccount ({ data, sealed }: { data: unknown, sealed: string | null }): StoredAccount {
  const user: unknown = typeof data === 'string' ? JSON.parse(data) : data
  return sealed === null && isPlainObject(user) ? user : {}
}

/** Creates a function that does what `createAccountRestorer` describes, for a row of the table `users` as JSON text. */
function createUserRowRestorer (present: readonly StoredAccount[], keepsTokens: boolean): (line: string) => string {
  const restoreAccount = createAccountRestorer(present, keepsTokens)
  return (line) => {
    const row = JSON.parse(line) as { data: unknown, sealed: string | null, spelling: string | null }
    if (!isPlainObject(row.data)) return line
    const data = restoreAccount(row.data, row.sealed !== null)
    // `spelling` is the JSON text of the former `data`, so it is removed.
    return data === row.data ? line : JSON.stringify({ ...row, data, spelling: null })
  }
}

/**
 * Creates a function that changes `number` in a row of a backup, so that it is below the numbers of the existing rows,
 * which are newer. Numbers may become negative.
 */
async function createRowRenumberer (
  tx: Transaction, name: string, rowsOf: RestoreOptions['rowsOf']
): Promise<(line: string) => string> {
  const [present] = await selectRows<{ first: string | number | null }>(
    tx, sql`select min(number) as first from ${sql.identifier(name)}`
  )
  const first = present?.first ?? null
  if (first === null) return (line) => line
  let last = 0
  for await (const line of rowsOf(name) ?? []) last = Math.max(last, (JSON.parse(line) as { number: number }).number)
  return (line) => {
    const row = JSON.parse(line) as { number: number }
    return JSON.stringify({ ...row, number: row.number - last - 1 + Number(first) })
  }
}

/**
 * Inserts rows, each given as JSON text with the same members. Existing rows with the same keys are kept.
 * @param change converts each row before it is inserted
 */
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
    if (waiting.length >= batchSize) await flush()
  }
  await flush()
}
