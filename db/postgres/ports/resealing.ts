import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises'
import { and, asc, eq, gt, inArray, isNotNull, sql, type SQL } from 'drizzle-orm'
import type { PgColumn, PgTable } from 'drizzle-orm/pg-core'
import { sealedCollections } from '../../records.ts'
import { StorageError, type Resealing, type OutdatedSealCounts, type Vault } from '../../store.ts'
import { selectRows, type Transaction } from '../connection/driver.ts'
import { safeMessageOf } from '../connection/failures.ts'
import type { QueryRunner } from '../connection/query-runner.ts'
import { resealText, type SealedText } from '../sealed-text.ts'
import { activities, auditEntries, oauthClients, records, settingsTableNames, settingsTableOf } from '../tables.ts'
import { activityVaultPlace } from './activities.ts'
import { auditVaultPlace } from './audit-trail.ts'

/** Max number of rows that are re-encrypted in one transaction. */
const batchSize = 50
/** The pause after a batch, in ms, so that other work on the database is not delayed. */
const batchPause = 10

/** A table, or a part of a table, whose columns `data` and `sealed` contain texts that `sealText` has encrypted. */
interface SealedTable {
  /** The kind of texts in the table, in the plural, for messages. */
  readonly what: string
  readonly table: PgTable & { readonly sealed: PgColumn, readonly data: PgColumn }
  /** The condition that selects the rows; undefined means all rows of the table. */
  readonly condition?: SQL
  /** An indexed column with the id of the encryption key; only set for a table that may be large. */
  readonly sealedBy?: PgColumn
  /** The primary key. The rows are processed in its order. */
  readonly key: PgColumn
  /** The column whose value is passed to `placeOf`. */
  readonly name: PgColumn
  readonly placeOf: (name: string) => string
}

const sealedTables: readonly SealedTable[] = [
  ...sealedCollections.map(({ collection, what }): SealedTable => ({
    what,
    table: records,
    condition: eq(records.collection, collection.name),
    key: records.id,
    name: records.id,
    placeOf: (id) => id
  })),
  {
    what: 'entries of the audit log',
    table: auditEntries,
    key: auditEntries.number,
    name: auditEntries.id,
    placeOf: auditVaultPlace
  },
  {
    what: 'recorded calls',
    table: activities,
    sealedBy: activities.sealedBy,
    key: activities.id,
    name: activities.id,
    placeOf: activityVaultPlace
  }
]

type CountedTable =
  Pick<SealedTable, 'what' | 'condition' | 'sealedBy'> & { readonly table: PgTable & { readonly sealed: PgColumn } }

/** All tables with encrypted texts. `resealSettings` re-encrypts the tables that are not in `sealedTables`. */
const countedTables: readonly CountedTable[] = [
  ...settingsTableNames.map((name) => ({ what: `entries of ${JSON.stringify(name)}`, table: settingsTableOf(name) })),
  { what: 'OAuth clients', table: oauthClients },
  ...sealedTables
]

/** Returns the SQL that extracts the id of the key from an encrypted text, `v1.<8 hex digits>.…`, in the database. */
const keyIdOf = (sealed: PgColumn): SQL<string> => sql<string>`substr(${sealed}, 4, 8)`

/** Max number of rows per key that are counted in a large table. */
const maxCounted = 10_000

/**
 * Returns the query that lists the key ids in an indexed column, and counts the rows of each id, up to `maxCounted`.
 * Each id is found by one look-up in the index.
 * @param id the indexed column
 */
const countByIndex = (table: PgTable, id: PgColumn): SQL => sql`
  with recursive ids as (
    select min(${id}) as id from ${table}
    union all select (select min(${id}) from ${table} where ${id} > ids.id) from ids where ids.id is not null
  )
  select id, (
    select count(*)::int from (select 1 from ${table} where ${id} = ids.id
      limit ${sql.raw(String(maxCounted))}) as found
  ) as count from ids where id is not null`

/**
 * Returns the common beginning of all texts that were encrypted with a key. `Vault.isSealedWithFormerKey` and
 * `Vault.isLocked` read only this beginning of a text.
 * @param id the id of the key
 */
const sealedTextStart = (id: string): string => `v1.${id}.`

/**
 * Re-encrypts the texts in all tables that were encrypted with a former key. Each batch is a transaction that locks its
 * rows and skips rows locked by other transactions. So several replicas can work at once, and an interrupted run keeps
 * the finished batches.
 */
export class PostgresResealing implements Resealing {
  readonly #queries: QueryRunner
  readonly #vault: Vault
  readonly #resealSettings: () => Promise<number>

  /**
   * @param resealSettings re-encrypts secrets of settings and clients with the newest key; returns the number of rows
   */
  constructor (queries: QueryRunner, vault: Vault, resealSettings: () => Promise<number>) {
    this.#queries = queries
    this.#vault = vault
    this.#resealSettings = resealSettings
  }

  async countOutdatedSeals (): Promise<OutdatedSealCounts> {
    let former = 0
    const locked: Array<OutdatedSealCounts['locked'][number]> = []
    for (const { what, ...table } of countedTables) {
      for (const { id, count } of await this.#countByKey(table)) {
        if (this.#vault.isSealedWithFormerKey(sealedTextStart(id))) former += count
        else if (this.#vault.isLocked(sealedTextStart(id))) locked.push({ what, key: id, count })
      }
    }
    return { former, locked }
  }

  async resealAll (signal: AbortSignal): Promise<{ anew: number }> {
    let anew = await this.#resealAllSettings()
    for (const table of sealedTables) {
      anew += await this.#resealTable(table, signal)
    }
    return { anew }
  }

  /** Calls `resealSettings`, and converts its errors. @returns the number of rows @throws StorageError */
  async #resealAllSettings (): Promise<number> {
    try {
      return await this.#resealSettings()
    } catch (error) {
      throw error instanceof StorageError ? error : new StorageError(safeMessageOf(error), false)
    }
  }

  async #countByKey (
    { table, condition, sealedBy }: Omit<CountedTable, 'what'>
  ): Promise<Array<{ id: string, count: number }>> {
    if (sealedBy) {
      return await this.#queries.runSlow(async (db) => await selectRows(db, countByIndex(table, sealedBy)))
    }
    const id = keyIdOf(table.sealed)
    return await this.#queries.runSlow(async (db) =>
      await db
        .select({ id, count: sql<number>`count(*)::int` })
        .from(table as PgTable)
        .where(and(condition, isNotNull(table.sealed)))
        .groupBy(id))
  }

  /** Re-encrypts the texts of a table in batches. @returns the number of re-encrypted texts */
  async #resealTable (table: SealedTable, signal: AbortSignal): Promise<number> {
    const formerKeys =
      (await this.#countByKey(table)).map(({ id }) => id).filter(
        (id) => this.#vault.isSealedWithFormerKey(sealedTextStart(id))
      )
    let anew = 0
    if (formerKeys.length === 0) return anew
    for (let last: string | number | undefined; ;) {
      signal.throwIfAborted()
      const after = last
      const batch = await this.#queries.runBackground(async (tx) =>
        await this.#resealBatch(tx, table, formerKeys, after))
      anew += batch.anew
      if (batch.last === undefined) return anew
      last = batch.last
      await sleep(batchPause, undefined, { signal })
    }
  }

  /**
   * Re-encrypts the rows of one batch.
   * @param after the key of the last row of the previous batch; undefined for the first batch
   * @returns `anew`: the number of re-encrypted rows; `last`: the key of the last row, undefined after the last batch
   */
  async #resealBatch (
    tx: Transaction,
    { table, condition, sealedBy, key, name, placeOf }: SealedTable,
    formerKeys: readonly string[],
    after: string | number | undefined
  ): Promise<{ anew: number, last: string | number | undefined }> {
    const rows = await tx
      .select({ key: sql<string | number>`${key}`, name: sql<string>`${name}`, data: table.data, sealed: table.sealed })
      .from(table as PgTable)
      .where(and(
        condition,
        isNotNull(table.sealed),
        sealedBy ? inArray(sealedBy, [...formerKeys]) : inArray(keyIdOf(table.sealed), [...formerKeys]),
        after === undefined ? undefined : gt(key, after)
      ))
      .orderBy(asc(key))
      .limit(batchSize)
      .for('update', { skipLocked: true })
    let anew = 0
    for (const row of rows) {
      const next = this.#resealText({ data: row.data, sealed: row.sealed } as SealedText, placeOf(row.name))
      if (next) {
        const { data: { secret }, sealed } = next
        await tx.execute(
          sql`update ${table} set data = jsonb_build_object('secret', ${secret}::text), sealed = ${sealed}${
            sealedBy === undefined ? sql`` : sql`, ${sql.identifier(sealedBy.name)} = ${sealed?.split('.')[1]}`
          } where ${eq(key, row.key)}`
        )
        anew++
      }
      await turn()
    }
    return { anew, last: rows.length < batchSize ? undefined : rows.at(-1)?.key }
  }

  /** Re-encrypts a text. @returns undefined if the text cannot be decrypted */
  #resealText (stored: SealedText, place: string): SealedText | undefined {
    try {
      return resealText(this.#vault, stored, place)
    } catch {
      return undefined
    }
  }
}
