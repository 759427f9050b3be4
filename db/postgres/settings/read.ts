import { and, asc, gte, inArray, lte } from 'drizzle-orm'
import { undecryptableReasonOf } from '../../document.ts'
import type { Vault } from '../../store.ts'
import type { Db, Transaction } from '../connection/driver.ts'
import { noRows, mergeRows, type SettingsRow, type SettingsRows } from './rows.ts'
import { decodeRow } from './stored.ts'
import {
  commits, oauthClients, settingsRevision, settingsTableNames, settingsTableOf, type StoredSettingsRow,
  type SettingsTableName
} from '../tables.ts'

/** The version of the settings: the number of commits, and the id of the last one. Equal heads mean equal settings. */
export interface CommitHead { readonly version: number, readonly head: string }

/** A consistent state of the settings in the database. */
export interface DatabaseState extends CommitHead {
  readonly rows: SettingsRows
  /**
   * The rows that were read, and whose secrets are encrypted with a former encryption key. `sealed` is the stored
   * encrypted text.
   */
  readonly outdated: ReadonlyArray<{ table: SettingsTableName, row: SettingsRow, sealed: string }>
}

const sameHead = (one: CommitHead, other: CommitHead): boolean =>
  one.version === other.version && one.head === other.head

/** Reads the head; undefined if nothing was ever stored. */
export async function readHead (db: Db): Promise<CommitHead | undefined> {
  const [found] =
    await db.select({ version: settingsRevision.version, head: settingsRevision.head }).from(settingsRevision)
  return found
}

/**
 * Reads the settings. With a former state, only the rows that commits have touched since are read, if these commits are
 * still listed. Unchanged rows stay the same objects.
 */
export async function readRows (db: Db, vault: Vault, former?: DatabaseState): Promise<DatabaseState> {
  return await db.transaction(
    async (tx) => await readRowsInTransaction(tx, vault, former),
    { isolationLevel: 'repeatable read', accessMode: 'read only' }
  )
}

/** Whether the tables of settings and the table of clients are empty. */
export async function isDatabaseEmpty (db: Db): Promise<boolean> {
  const someClients = await db.select({ key: oauthClients.key }).from(oauthClients).limit(1)
  if (someClients.length > 0) return false
  for (const name of settingsTableNames) {
    const table = settingsTableOf(name)
    const found = await db.select({ position: table.position }).from(table).limit(1)
    if (found.length > 0) return false
  }
  return true
}

/** The error for a database with entries but without a head: the state of its entries is unknown. */
export const settingsLostError = (): Error =>
  new Error('The database has lost its settings: the table "revision" is empty. Restore it from a backup.')

/** Like `readRows`, in a given transaction, which must read one snapshot or hold the commit lock. */
export async function readRowsInTransaction (
  tx: Transaction, vault: Vault, former?: DatabaseState
): Promise<DatabaseState> {
  const now = await readHead(tx)
  if (now === undefined) throw settingsLostError()
  if (former !== undefined && sameHead(former, now)) return former
  const touched = former === undefined ? undefined : await touchedSince(tx, former, now)
  const outdated: Array<{ table: SettingsTableName, row: SettingsRow, sealed: string }> = []
  const rows: Record<SettingsTableName, readonly SettingsRow[]> = { ...former?.rows ?? noRows }
  for (const table of settingsTableNames) {
    const positions = touched?.get(table)
    if (touched !== undefined && positions === undefined) continue
    const read = (await selectStoredRows(tx, table, positions)).map((stored) => {
      const row = decodeRow(table, stored, vault)
      // A locked entry has masks in place of its secrets. Encrypting these would destroy the secrets.
      if (
        stored.sealed !== null && undecryptableReasonOf(row.entry) === undefined &&
        vault.isSealedWithFormerKey(stored.sealed)
      ) {
        outdated.push({ table, row, sealed: stored.sealed })
      }
      return row
    })
    rows[table] = mergeRows(rows[table], read, positions)
  }
  return { ...now, rows, outdated }
}

/** Max number of values in an IN condition. */
export const maxParameters = 5_000

/** Reads the rows at some positions of a table; by default all rows. */
async function selectStoredRows (
  tx: Transaction, name: SettingsTableName, wantedPositions: ReadonlySet<number> | undefined
): Promise<StoredSettingsRow[]> {
  const table = settingsTableOf(name)
  if (wantedPositions === undefined) return await tx.select().from(table).orderBy(asc(table.position))
  const wanted = [...wantedPositions]
  const found: StoredSettingsRow[] = []
  for (let at = 0; at < wanted.length; at += maxParameters) {
    const positions = wanted.slice(at, at + maxParameters)
    found.push(...await tx.select().from(table).where(inArray(table.position, positions)))
  }
  return found
}

/**
 * Finds the positions of the rows that were written or removed between two heads.
 * @returns undefined if that is unknown: a commit is no longer listed, or has too many rows to list, or `former` is not
 *   an earlier head of this database
 */
async function touchedSince (
  tx: Transaction, former: CommitHead, now: CommitHead
): Promise<Map<SettingsTableName, Set<number>> | undefined> {
  const found = await tx
    .select()
    .from(commits)
    .where(and(gte(commits.version, former.version), lte(commits.version, now.version)))
    .orderBy(asc(commits.version))
  if (found.length !== now.version - former.version + 1 || found[0]?.id !== former.head) return undefined
  const all = new Map<SettingsTableName, Set<number>>()
  for (const { touched } of found.slice(1)) {
    if (touched === null) return undefined
    for (const name of settingsTableNames) {
      const positions = all.get(name) ?? new Set()
      for (const position of touched[name] ?? []) positions.add(position)
      if (positions.size > 0) all.set(name, positions)
    }
  }
  return all
}
