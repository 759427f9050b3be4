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

/**
 * The last commit. `version`: the number of commits so far; `head`: the id of the last commit. Two states of a database
 * with the same `version` and `head` have the same settings.
 */
export interface CommitHead { readonly version: number, readonly head: string }

/** A consistent state of the settings in the database. */
export interface DatabaseState extends CommitHead {
  readonly rows: SettingsRows
  /**
   * The newly read rows whose secrets are encrypted with a former encryption key. `sealed`: the encrypted text as
   * stored.
   */
  readonly outdated: ReadonlyArray<{ table: SettingsTableName, row: SettingsRow, sealed: string }>
}

const isSameHead = (one: CommitHead, other: CommitHead): boolean =>
  one.version === other.version && one.head === other.head

/** Reads the last commit; undefined if nothing was ever stored. */
export async function readHead (db: Db): Promise<CommitHead | undefined> {
  const [found] =
    await db.select({ version: settingsRevision.version, head: settingsRevision.head }).from(settingsRevision)
  return found
}

/**
 * Reads the settings, in one consistent snapshot. Rows that equal those of `former` stay the same objects.
 * @param former the last state that was read: only the rows that later commits have touched are read, if the table
 *   `commits` still lists all these commits; undefined reads all rows
 * @throws Error when the table `revision` is empty; the driver's error
 */
export async function readRows (db: Db, vault: Vault, former?: DatabaseState): Promise<DatabaseState> {
  return await db.transaction(
    async (tx) => await readRowsInTransaction(tx, vault, former),
    { isolationLevel: 'repeatable read', accessMode: 'read only' }
  )
}

/** Whether the tables of the settings and the table of OAuth clients are empty. */
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

/** Creates the error for a database with entries but without a row in `revision`, whose entries may be incomplete. */
export const settingsLostError = (): Error =>
  new Error('The database has lost its settings: the table "revision" is empty. Restore it from a backup.')

/**
 * Reads the settings as `readRows` does, in a given transaction. The transaction must have the isolation level
 * `repeatable read`, or hold the commit lock.
 */
export async function readRowsInTransaction (
  tx: Transaction, vault: Vault, former?: DatabaseState
): Promise<DatabaseState> {
  const now = await readHead(tx)
  if (now === undefined) throw settingsLostError()
  if (former !== undefined && isSameHead(former, now)) return former
  const touched = former === undefined ? undefined : await touchedSince(tx, former, now)
  const outdated: Array<{ table: SettingsTableName, row: SettingsRow, sealed: string }> = []
  const rows: Record<SettingsTableName, readonly SettingsRow[]> = { ...former?.rows ?? noRows }
  for (const table of settingsTableNames) {
    const positions = touched?.get(table)
    if (touched !== undefined && positions === undefined) continue
    const read = (await selectStoredRows(tx, table, positions)).map((stored) => {
      const row = decodeRow(table, stored, vault)
      // A locked entry has masks in place of its secrets. Encrypting the masks would destroy the secrets.
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

/** Max number of parameters in an IN condition of one statement. */
export const maxParameters = 5_000

/** Reads the rows of a table at the wanted positions; all rows if these are undefined. */
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
 * Finds the positions of the rows that were written or removed by the commits after `former`, up to `now`.
 * @returns the positions by table; undefined if they are unknown: a commit is no longer listed or had too many rows to
 *   list them, or `former` is not an earlier commit of this database
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
