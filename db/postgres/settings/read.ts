import { and, asc, gte, inArray, lte } from 'drizzle-orm'
import { lockOf } from '../../document.ts'
import type { Vault } from '../../store.ts'
import type { Db, Transaction } from '../connection/driver.ts'
import { noRows, patch, type Row, type Rows } from './rows.ts'
import { decode } from './stored.ts'
import { commits, revision, tableNames, tableOf, type Stored, type TableName } from '../tables.ts'

/** Where the settings stand: how often they were changed, and by which commit last. Two that are equal in both hold the same. */
export interface Head { readonly version: number, readonly head: string }

/** What is in the database, at one moment. */
export interface Found extends Head {
  readonly rows: Rows
  /** Rows whose secrets a former key has sealed, as they are stored. */
  readonly outdated: ReadonlyArray<{ table: TableName, row: Row, sealed: string }>
}

const sameHead = (one: Head, other: Head): boolean => one.version === other.version && one.head === other.head

/** Where the settings stand; undefined: nothing was ever stored. */
export async function readHead (db: Db): Promise<Head | undefined> {
  const [found] = await db.select({ version: revision.version, head: revision.head }).from(revision)
  return found
}

/** All that is there, or, where that can be told, only what came after a former state: of the rest the rows are the same objects. */
export async function readRows (db: Db, vault: Vault, former?: Found): Promise<Found> {
  return await db.transaction(async (tx) => await readIn(tx, vault, former), { isolationLevel: 'repeatable read', accessMode: 'read only' })
}

/** Whether no entry is stored. */
export async function isEmpty (db: Db): Promise<boolean> {
  for (const name of tableNames) {
    if (
      (
        await db
          .select({ position: tableOf(name).position })
          .from(tableOf(name))
          .limit(1)
      ).length > 0
    ) { return false }
  }
  return true
}

/** That settings stand somewhere is told by the head, and nothing else tells which they are. */
export const lost = (): Error => new Error('The database has lost its settings: the table "revision" is empty. Restore it from a backup.')

/** As `readRows`, in a transaction that sees one moment, or keeps others from committing. */
export async function readIn (tx: Transaction, vault: Vault, former?: Found): Promise<Found> {
  const now = await readHead(tx)
  if (now === undefined) throw lost()
  if (former !== undefined && sameHead(former, now)) return former
  const touched = former === undefined ? undefined : await touchedSince(tx, former, now)
  const outdated: Array<{ table: TableName, row: Row, sealed: string }> = []
  const rows: Record<TableName, readonly Row[]> = { ...former?.rows ?? noRows }
  for (const table of tableNames) {
    const positions = touched?.get(table)
    if (touched !== undefined && positions === undefined) continue
    const read = (await select(tx, table, positions)).map((stored) => {
      const row = decode(table, stored, vault)
      // What did not open has masks where its secrets are: sealing those anew would be the end of them.
      if (stored.sealed !== null && lockOf(row.entry) === undefined && vault.outdated(stored.sealed)) {
        outdated.push({ table, row, sealed: stored.sealed })
      }
      return row
    })
    rows[table] = patch(rows[table], read, positions)
  }
  return { ...now, rows, outdated }
}

/** So many values fit into one statement. */
export const chunk = 5_000

async function select (tx: Transaction, name: TableName, positions: ReadonlySet<number> | undefined): Promise<Stored[]> {
  const table = tableOf(name)
  if (positions === undefined) return await tx.select().from(table).orderBy(asc(table.position))
  const wanted = [...positions]
  const found: Stored[] = []
  for (let at = 0; at < wanted.length; at += chunk) {
    found.push(
      ...(await tx
        .select()
        .from(table)
        .where(inArray(table.position, wanted.slice(at, at + chunk))))
    )
  }
  return found
}

/** Which rows were touched between two heads; undefined: that cannot be told any more, or the database is not a later state of the former one. */
async function touchedSince (tx: Transaction, former: Head, now: Head): Promise<Map<TableName, Set<number>> | undefined> {
  const found = await tx
    .select()
    .from(commits)
    .where(and(gte(commits.version, former.version), lte(commits.version, now.version)))
    .orderBy(asc(commits.version))
  if (found.length !== now.version - former.version + 1 || found[0]?.id !== former.head) return undefined
  const all = new Map<TableName, Set<number>>()
  for (const { touched } of found.slice(1)) {
    if (touched === null) return undefined
    for (const name of tableNames) {
      const positions = all.get(name) ?? new Set()
      for (const position of touched[name] ?? []) positions.add(position)
      if (positions.size > 0) all.set(name, positions)
    }
  }
  return all
}
