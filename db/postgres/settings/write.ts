import { and, eq, inArray, lte, sql } from 'drizzle-orm'
import type { Vault } from '../../store.ts'
import { channel, type Db, type Transaction } from '../connection/driver.ts'
import { chunk, isEmpty, lost, type Found, type Head } from './read.ts'
import { difference, type Rows } from './rows.ts'
import { encode } from './stored.ts'
import { patience } from '../connection/within.ts'
import { commits, revision, tableNames, tableOf, type Stored, type TableName } from '../tables.ts'

/** So many commits are remembered: a replica that missed more reads all. */
const remembered = 1_000
/** A commit that touches more rows does not list them. */
const listed = 2_000
/** Rows for one statement: each has up to seven values, and a statement at most 65,535. */
const batch = 1_000

/** What a commit does to the tables. */
export type Plan = ReadonlyMap<TableName, { readonly written: readonly Stored[], readonly gone: readonly number[] }>

/** What is written anew goes first, so that names can change places. Not what was never seen there: somebody has put it there by hand. */
function known (former: Rows[TableName], written: Rows[TableName]): number[] {
  const positions = new Set(former.map(({ position }) => position))
  return written.flatMap(({ position }) => positions.has(position) ? [position] : [])
}

/** What must be written so that the rows of the database become others; secrets are sealed here. */
export function plan (former: Rows, next: Rows, vault: Vault): Plan {
  return new Map([...difference(former, next)].map(([table, { written, removed }]) => [table, {
    written: encode(table, written, next[table], vault),
    gone: [...removed, ...known(former[table], written)]
  }]))
}

/**
 * Makes the next commit, if nobody was faster, and tells the other replicas.
 * @param base where the settings must stand
 * @param id of the new commit
 * @param all the changes take the place of all that is there
 * @returns whether it was made
 */
export async function write (tx: Transaction, base: Head, id: string, changes: Plan, all = false): Promise<boolean> {
  const version = base.version + 1
  // Whoever comes second waits here for the first one, and then finds another head.
  const moved = await tx
    .update(revision)
    .set({ version, head: id })
    .where(and(eq(revision.version, base.version), eq(revision.head, base.head)))
    .returning({ version: revision.version })
  if (moved.length === 0) return false
  if (all) for (const name of tableNames) await tx.delete(tableOf(name))
  const touched: Partial<Record<TableName, number[]>> = {}
  let count = 0
  for (const [name, { written, gone }] of changes) {
    const table = tableOf(name)
    for (let at = 0; at < gone.length; at += chunk) await tx.delete(table).where(inArray(table.position, gone.slice(at, at + chunk)))
    for (let at = 0; at < written.length; at += batch) await tx.insert(table).values(written.slice(at, at + batch))
    touched[name] = [...new Set([...gone, ...written.map(({ position }) => position)])]
    count += touched[name].length
  }
  // What a lost future left there, after a return to a backup, makes way.
  await tx.delete(commits).where(eq(commits.version, version))
  await tx.insert(commits).values({ version, id, touched: all || count > listed ? null : touched })
  await tx.delete(commits).where(lte(commits.version, version - remembered))
  await tx.execute(sql`select pg_notify(${channel}, ${id})`)
  return true
}

/** Whether a commit was made. It waits for what is still under way on a connection that broke. */
export async function wasMade (db: Db, base: Head, id: string): Promise<boolean> {
  return await db.transaction(async (tx) => {
    await tx.select().from(revision).for('update')
    const [found] = await tx.select().from(commits).where(eq(commits.version, base.version + 1))
    return found?.id === id
  })
}

/** The first commit of a database that nothing was ever stored in. Of several replicas, one makes it. @throws Error with a sentence when something is stored there all the same */
export async function begin (db: Db, id: string, changes: Plan): Promise<void> {
  await db.transaction(async (tx) => {
    // The second one waits here until the first has ended, which may have much to write.
    await tx.execute(sql.raw(`set local statement_timeout = ${patience.begin}`))
    const mine = await tx.insert(revision).values({ version: 0, head: id }).onConflictDoNothing().returning({ version: revision.version })
    if (mine.length === 0) return
    if (!await isEmpty(tx)) throw lost()
    await write(tx, { version: 0, head: id }, id, changes)
  })
}

/** Seals anew what a former key has sealed. A row that was written meanwhile is left alone: it has the newest key. */
export async function reseal (db: Db, vault: Vault, rows: Rows, outdated: Found['outdated']): Promise<void> {
  await db.transaction(async (tx) => {
    for (const { table: name, row, sealed } of outdated) {
      const [stored] = encode(name, [row], rows[name], vault)
      const table = tableOf(name)
      if (stored) {
        await tx
          .update(table)
          .set({ data: stored.data, spelling: stored.spelling, sealed: stored.sealed })
          .where(and(eq(table.position, row.position), eq(table.sealed, sealed)))
      }
    }
  })
}
