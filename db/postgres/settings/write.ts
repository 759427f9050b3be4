import { and, eq, inArray, lte, sql } from 'drizzle-orm'
import type { Vault } from '../../store.ts'
import { notificationChannel, type Db, type Transaction } from '../connection/driver.ts'
import { maxParameters, isDatabaseEmpty, settingsLostError, type DatabaseState, type CommitHead } from './read.ts'
import { diffRows, type SettingsRows } from './rows.ts'
import { encodeRows } from './stored.ts'
import { timeouts } from '../connection/timeouts.ts'
import {
  commits, settingsRevision, settingsTableNames, settingsTableOf, type StoredSettingsRow, type SettingsTableName
} from '../tables.ts'

/** Number of commits that the table `commits` lists. A replica that has missed more commits reads all rows. */
const keptCommits = 1_000
/** Max number of rows that are listed for a commit. For a larger commit none are listed, and replicas read all rows. */
const maxTouchedRows = 2_000
/** Max number of rows per INSERT. A row has up to seven values, and a statement can have at most 65,535 parameters. */
const insertSize = 1_000

/**
 * The writes of a commit, by table. `gone`: the positions of rows to delete; `written`: the rows to insert afterwards.
 */
export type Writes = ReadonlyMap<SettingsTableName, {
  readonly written: readonly StoredSettingsRow[], readonly gone: readonly number[]
}>

/**
 * Returns the positions of existing rows that are written again. These rows are deleted before the insert, so that two
 * rows can swap their names. Other positions are not returned: a row that was inserted there by hand must not be
 * deleted.
 */
function rewrittenPositions (
  former: SettingsRows[SettingsTableName], written: SettingsRows[SettingsTableName]
): number[] {
  const positions = new Set(former.map(({ position }) => position))
  return written.flatMap(({ position }) => positions.has(position) ? [position] : [])
}

/** Computes the writes that turn the rows `former` into the rows `next`, with the secrets encrypted. */
export function planWrites (former: SettingsRows, next: SettingsRows, vault: Vault): Writes {
  return new Map([...diffRows(former, next)].map(([table, { written, removed }]) => [table, {
    written: encodeRows(table, written, next[table], vault),
    gone: [...removed, ...rewrittenPositions(former[table], written)]
  }]))
}

/**
 * Makes a commit and notifies the other replicas, unless another commit was made after `base`.
 * @param base the last commit of the state from which the writes were computed
 * @param id the id of the new commit
 * @param replaceAll whether to delete all existing rows of the settings first
 * @returns whether the commit was made
 */
export async function writeCommit (
  tx: Transaction, base: CommitHead, id: string, writes: Writes, replaceAll = false
): Promise<boolean> {
  const version = base.version + 1
  // If two replicas commit at once, the second waits here for the row lock of the first, and then finds another
  // version.
  const updated = await tx
    .update(settingsRevision)
    .set({ version, head: id })
    .where(and(eq(settingsRevision.version, base.version), eq(settingsRevision.head, base.head)))
    .returning({ version: settingsRevision.version })
  if (updated.length === 0) return false
  if (replaceAll) for (const name of settingsTableNames) await tx.delete(settingsTableOf(name))
  const touched: Partial<Record<SettingsTableName, number[]>> = {}
  let count = 0
  for (const [name, { written, gone }] of writes) {
    const table = settingsTableOf(name)
    for (let at = 0; at < gone.length; at += maxParameters) {
      await tx.delete(table).where(inArray(table.position, gone.slice(at, at + maxParameters)))
    }
    for (let at = 0; at < written.length; at += insertSize) {
      await tx.insert(table).values(written.slice(at, at + insertSize))
    }
    touched[name] = [...new Set([...gone, ...written.map(({ position }) => position)])]
    count += touched[name].length
  }
  // `commits` may already have a row with this version if only some of the tables were restored from a dump.
  await tx.delete(commits).where(eq(commits.version, version))
  await tx.insert(commits).values({ version, id, touched: replaceAll || count > maxTouchedRows ? null : touched })
  await tx.delete(commits).where(lte(commits.version, version - keptCommits))
  await tx.execute(sql`select pg_notify(${notificationChannel}, ${id})`)
  return true
}

/**
 * Locks the row of `revision` until the transaction ends, so that no other replica can commit, and returns its content.
 * If nothing was ever stored, the row is created first.
 * @param id the `head` of the new row
 */
export async function lockHead (tx: Transaction, id: string): Promise<CommitHead> {
  const columns = { version: settingsRevision.version, head: settingsRevision.head }
  await tx.insert(settingsRevision).values({ version: 0, head: id }).onConflictDoNothing()
  const [head] = await tx.select(columns).from(settingsRevision).for('update')
  if (head === undefined) throw new Error('The table "revision" cannot be written.')
  return head
}

/**
 * Returns whether a commit was made. First waits until its transaction, which may still be in progress on a broken
 * connection, has ended.
 * @param base the commit before
 * @param id the id of the commit
 */
export async function wasCommitted (db: Db, base: CommitHead, id: string): Promise<boolean> {
  return await db.transaction(async (tx) => {
    await tx.select().from(settingsRevision).for('update')
    const [found] = await tx.select().from(commits).where(eq(commits.version, base.version + 1))
    return found?.id === id
  })
}

/**
 * Makes the first commit of an empty database. If several replicas do so at once, one of
 * them succeeds, and the others change nothing.
 * @param addOthers adds what is not part of the settings, in the same transaction
 * @returns whether this commit was made
 * @throws Error when the tables have entries although the table `revision` is empty
 */
export async function writeFirstCommit (
  db: Db, id: string, writes: Writes, addOthers: (tx: Transaction) => Promise<void>
): Promise<boolean> {
  return await db.transaction(async (tx) => {
    // A second replica waits at the insert until the first one has committed, which takes long if there is much to
    // write.
    await tx.execute(sql.raw(`set local statement_timeout = ${timeouts.seed}`))
    const inserted = await tx
      .insert(settingsRevision)
      .values({ version: 0, head: id })
      .onConflictDoNothing()
      .returning({ version: settingsRevision.version })
    if (inserted.length === 0) return false
    if (!await isDatabaseEmpty(tx)) throw settingsLostError()
    await writeCommit(tx, { version: 0, head: id }, id, writes)
    await addOthers(tx)
    return true
  })
}

/**
 * Re-encrypts rows with the newest key. Rows that were written in the meantime are skipped, since their secrets are
 * already encrypted anew.
 * @param rows all rows of the settings
 * @param outdated the rows to re-encrypt
 */
export async function resealRows (
  db: Db, vault: Vault, rows: SettingsRows, outdated: DatabaseState['outdated']
): Promise<void> {
  await db.transaction(async (tx) => {
    for (const { table: name, row, sealed } of outdated) {
      const [stored] = encodeRows(name, [row], rows[name], vault)
      const table = settingsTableOf(name)
      if (stored) {
        await tx
          .update(table)
          .set({ data: stored.data, spelling: stored.spelling, sealed: stored.sealed })
          .where(and(eq(table.position, row.position), eq(table.sealed, sealed)))
      }
    }
  })
}
