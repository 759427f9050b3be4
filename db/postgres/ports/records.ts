import { randomUUID } from 'node:crypto'
import { and, arrayOverlaps, desc, eq, gt, inArray, isNull, lt, or, sql, type SQL } from 'drizzle-orm'
import {
  recordCollections, tombstoneRetention, type RecordCollection, type RecordEntry, type Records, type RecordFilter,
  type StoredRecord
} from '../../records.ts'
import type { PgInsertValue } from 'drizzle-orm/pg-core'
import type { Vault } from '../../store.ts'
import type { Db, Transaction } from '../connection/driver.ts'
import type { QueryRunner } from '../connection/query-runner.ts'
import { sealText, unsealTextIfPossible } from '../sealed-text.ts'
import { records } from '../tables.ts'
import { toIndexableText, unescapeFromPostgres } from '../text.ts'
import { ThrottledCleanup } from './throttled-cleanup.ts'

type Row = typeof records.$inferSelect

/** Returns the primary key of an entry, which is also the `place` of its value for the vault. */
const idOf = ({ name }: RecordCollection, key: string): string => `${name}/${toIndexableText(key)}`
/**
 * Max size of a label in bytes. Names of users and servers are read from labels: they have up to 512 bytes after a
 * prefix such as `server:`. An index entry has room for a label of this size whose every byte is percent-encoded.
 */
const maxLabelSize = 640
/**
 * Returns a label in the form to store. It begins with the name of the collection, since the labels of all collections
 * share one index. The label is encoded, since the drivers escape quotes in arrays differently.
 */
const labelOf = ({ name }: RecordCollection, label: string): string =>
  `${name}/${encodeURIComponent(toIndexableText(label, maxLabelSize))}`
const timeFromNow = (ms: number): SQL => sql`now() + ${ms} * interval '1 millisecond'`
const isCurrent = or(isNull(records.expires), gt(records.expires, sql`now()`))
const age = sql<number>`greatest(0, extract(epoch from now() - ${records.changed}) * 1000)`.mapWith(Number)
const { owner, labels, version, expires, value, data, sealed } = records
const briefColumns = { id: records.id, owner, labels, version, expires, age }
const wholeColumns = { ...briefColumns, value, data, sealed }
type Found = Pick<Row, 'id' | 'owner' | 'labels' | 'version' | 'expires'> &
  Partial<Pick<Row, 'value' | 'data' | 'sealed'>> & { readonly age: number }

/** Stores the records that all replicas share, in one table. */
export class PostgresRecords implements Records {
  readonly outlivesProcess = true
  readonly #queries: QueryRunner
  readonly #vault: Vault
  readonly #cleanups = new Map<string, ThrottledCleanup>()

  constructor (queries: QueryRunner, vault: Vault) {
    this.#queries = queries
    this.#vault = vault
  }

  async put (collection: RecordCollection, entries: readonly RecordEntry[]): Promise<void> {
    if (entries.length === 0) return
    const owners = collection.maxPerOwner === undefined ? [] : entries.flatMap((entry) => entry.owner ?? [])
    if (entries.length === 1 && owners.length === 0) {
      await this.#queries.runQuick(async (db) => { await insertRecords(db, this.#vault, collection, entries) })
    } else {
      await this.#queries.runTransaction(async (tx) => {
        await insertRecords(tx, this.#vault, collection, entries)
        for (const each of new Set(owners)) await removeExcess(tx, collection, each)
      })
    }
    this.#cleanUp(collection)
  }

  async find (collection: RecordCollection, key: string): Promise<StoredRecord | undefined> {
    const [found] = await this.#queries.runQuick(async (db) => await recordByKeyStatement(db, collection, key))
    return found && this.#toStored(found)
  }

  async swap (
    collection: RecordCollection, version: string | undefined, entry: RecordEntry, added: readonly RecordEntry[] = []
  ): Promise<boolean> {
    const work = async (db: Db): Promise<boolean> => {
      const { id, ...set } = toRow(this.#vault, collection, entry)
      const [stored] = version === undefined
        ? await db
          .insert(records)
          .values({ id, ...set })
          .onConflictDoUpdate({ target: records.id, set, setWhere: lt(records.expires, sql`now()`) })
          .returning({ id: records.id })
        : await db
          .update(records)
          .set(set)
          .where(and(eq(records.id, id), eq(records.version, version), isCurrent))
          .returning({ id: records.id })
      if (stored === undefined) return false
      if (added.length > 0) await insertRecords(db, this.#vault, collection, added)
      return true
    }
    const hasSwapped = added.length > 0
      ? await this.#queries.runTransaction(async (tx) => await work(tx))
      : await this.#queries.runQuick(work)
    this.#cleanUp(collection)
    return hasSwapped
  }

  async list (collection: RecordCollection, filter: RecordFilter, isBrief = false): Promise<StoredRecord[]> {
    const found: Found[] = await this.#queries.runQuick(async (db) => await db
      .select(isBrief ? briefColumns : wholeColumns)
      .from(records)
      .where(and(recordCondition(collection, filter), isCurrent))
      .orderBy(desc(records.at), records.id))
    return found.map((row) => this.#toStored(row))
  }

  async remove (collection: RecordCollection, keyOrFilter: string | RecordFilter): Promise<number> {
    const condition = typeof keyOrFilter === 'string'
      ? eq(records.id, idOf(collection, keyOrFilter))
      : recordCondition(collection, keyOrFilter)
    return await this.#queries.runQuick(async (db) => (await removeRecords(db, condition)).length)
  }

  #toStored ({ id, owner, labels, version, expires, value, data, sealed, age }: Found): StoredRecord {
    const prefix = id.indexOf('/') + 1
    const stored = {
      version,
      age,
      labels: labels.map((label) => unescapeFromPostgres(decodeURIComponent(label.slice(prefix)))),
      ...owner === null ? {} : { owner: unescapeFromPostgres(owner) },
      ...expires === null ? {} : { expiresAt: expires.getTime() }
    }
    if (typeof value === 'string') return { ...stored, value: JSON.parse(value) as unknown }
    if (!data) return { ...stored, value: undefined }
    const text = unsealTextIfPossible(this.#vault, { data, sealed: sealed ?? null }, id)
    return text === undefined
      ? { ...stored, value: undefined, isLocked: true }
      : { ...stored, value: JSON.parse(text) as unknown }
  }

  /**
   * Removes expired entries and those beyond `maxEntries` in the background, at most once a minute (PeriodicCleanup).
   */
  #cleanUp (collection: RecordCollection): void {
    const { name, maxEntries, evicts } = collection
    const cleanup = this.#cleanups.get(name) ?? new ThrottledCleanup(async () => {
      const isOwn = eq(records.collection, name)
      await this.#queries.runSlow(async (db) =>
        await db.delete(records).where(and(isOwn, lt(records.expires, sql`now()`))))
      const excess = evicts === 'largest owners'
        ? sql`${isOwn} and owner in (select owner from (
            select owner, sum(count(*)) over (order by count(*), max(expires) desc, owner) as running
              from ${records} where ${isOwn} group by owner
          ) as sizes where running > ${maxEntries})`
        : sql`id in (select id from ${records} where ${isOwn} order by at desc offset ${maxEntries})`
      await this.#queries.runSlow(async (db) => await db.execute(sql`delete from ${records} where ${excess}`))
    })
    this.#cleanups.set(name, cleanup)
    cleanup.runIfDue()
  }
}

/** Stores entries in place of those with the same keys. */
export async function insertRecords (
  db: Db, vault: Vault, collection: RecordCollection, entries: readonly RecordEntry[]
): Promise<void> {
  const set = Object.fromEntries(
    ['collection', 'version', 'value', 'data', 'sealed', 'owner', 'labels', 'at', 'changed', 'expires']
      .map((name) => [name, sql`excluded.${sql.identifier(name)}`])
  )
  // Sorted by id, so that two writers of the same entries lock them in the same order and cannot deadlock.
  const rows = entries.map((entry) => toRow(vault, collection, entry)).sort((one, other) => one.id < other.id ? -1 : 1)
  await db
    .insert(records)
    .values(rows)
    .onConflictDoUpdate({ target: records.id, set })
}

function toRow (
  vault: Vault,
  collection: RecordCollection,
  { key, value, owner, labels = [], at, expiresAt, expiresIn, version = randomUUID() }: RecordEntry
) {
  const id = idOf(collection, key)
  const text = JSON.stringify(value)
  return {
    id,
    collection: collection.name,
    version,
    ...collection.isSealed
      ? { value: null, ...sealText(vault, text, id) }
      : { value: text, data: null, sealed: null },
    owner: owner === undefined ? null : toIndexableText(owner),
    labels: labels.map((label) => labelOf(collection, label)),
    at: at === undefined ? sql`now()` : new Date(at),
    changed: sql`now()`,
    expires: expiresIn !== undefined ? timeFromNow(expiresIn) : expiresAt === undefined ? null : new Date(expiresAt)
  }
}

/** Creates the rows that record token families as revoked. @param families their ids, as in the column `owner` */
export const revokedFamilyRows = (families: readonly string[]): Array<PgInsertValue<typeof records>> => {
  const { name } = recordCollections.revokedFamilies
  return families.map((family) => ({
    id: `${name}/${family}`,
    collection: name,
    version: randomUUID(),
    value: 'null',
    owner: family,
    labels: [],
    at: sql`now()`,
    changed: sql`now()`,
    expires: timeFromNow(tombstoneRetention)
  }))
}

/** Returns the query that finds an unexpired entry. Exported for the test of its query plan. */
export const recordByKeyStatement = (db: Db, collection: RecordCollection, key: string) =>
  db.select(wholeColumns).from(records).where(and(eq(records.id, idOf(collection, key)), isCurrent))

/** Converts a filter to a condition on the table `records`. Expired entries match it, too. */
export function recordCondition (
  collection: RecordCollection, { owner, labels, changedWithin }: RecordFilter
): SQL | undefined {
  return and(
    eq(records.collection, collection.name),
    owner === undefined ? undefined : eq(records.owner, toIndexableText(owner)),
    labels === undefined ? undefined : arrayOverlaps(records.labels, labels.map((label) => labelOf(collection, label))),
    changedWithin === undefined ? undefined : gt(records.changed, timeFromNow(-changedWithin))
  )
}

/**
 * Removes the matching rows of the table `records`. The rows are locked in the order of their ids, so that two removals
 * cannot deadlock.
 * @returns the removed rows
 */
export async function removeRecords (db: Db, condition: SQL | undefined): Promise<Array<{ owner: string | null }>> {
  const locked = db.select({ id: records.id }).from(records).where(condition).orderBy(records.id).for('update')
  return await db.delete(records).where(inArray(records.id, locked)).returning({ owner: records.owner })
}

/**
 * Removes the oldest entries of an owner, so that `maxPerOwner` remain. Rows locked by other transactions are skipped,
 * which excludes deadlocks.
 */
async function removeExcess (
  tx: Transaction, { name, maxPerOwner = 0 }: RecordCollection, owner: string
): Promise<void> {
  const excess = tx
    .select({ id: records.id })
    .from(records)
    .where(and(eq(records.collection, name), eq(records.owner, toIndexableText(owner))))
    .orderBy(desc(records.at))
    .offset(maxPerOwner)
    .for('update', { skipLocked: true })
  await tx.delete(records).where(inArray(records.id, excess))
}
