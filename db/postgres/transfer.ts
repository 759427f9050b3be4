import { randomUUID } from 'node:crypto'
import type { Document } from '../apply.ts'
import { lockOf } from '../document.ts'
import type { Vault } from '../store.ts'
import type { Driver, Transaction } from './driver.ts'
import { readHead, readRows } from './read.ts'
import { noRows, toDocument, toRows } from './rows.ts'
import { revision, tableNames, tableOf } from './tables.ts'
import { sentence } from './trouble.ts'
import { plan, write } from './write.ts'

/** What the database holds, as a settings file says it, secrets in plain; undefined: nothing was ever stored. @throws Error with a sentence */
export async function exportDocument (driver: Driver, vault: Vault): Promise<Document | undefined> {
  return await plainly(async () => {
    if (await readHead(driver.db) === undefined) return undefined
    const { rows } = await readRows(driver.db, vault)
    for (const table of tableNames) {
      for (const { name, entry } of rows[table]) {
        const why = lockOf(entry)
        if (why !== undefined) throw new Error(`The secrets of ${name === '' ? `an entry of "${table}"` : JSON.stringify(name)} cannot be opened: ${why}`)
      }
    }
    return toDocument(rows)
  })
}

/**
 * Stores a whole document in a database that is empty, in one commit; replicas that run take it up.
 * @param replace whether it takes the place of what is there
 * @throws Error with a sentence; nothing was changed then
 */
export async function importDocument (driver: Driver, vault: Vault, document: Document, replace: boolean): Promise<void> {
  const id = randomUUID()
  const changes = plan(noRows, toRows(document), vault)
  await plainly(async () => {
    await driver.db.transaction(async (tx) => {
      await tx.insert(revision).values({ version: 0, head: id }).onConflictDoNothing()
      const [base] = await tx.select({ version: revision.version, head: revision.head }).from(revision).for('update')
      if (base === undefined) throw new Error('The table "revision" cannot be written.')
      if (!replace && !await isEmpty(tx)) throw new Error('The database holds settings already, and was left as it is. Export them first if they matter; --replace puts the file in their place.')
      await write(tx, base, id, changes, true)
    })
  })
}

async function isEmpty (tx: Transaction): Promise<boolean> {
  for (const name of tableNames) if ((await tx.select().from(tableOf(name)).limit(1)).length > 0) return false
  return true
}

async function plainly<Result> (work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    throw new Error(sentence(error))
  }
}
