import { randomUUID } from 'node:crypto'
import type { Document } from '../../apply.ts'
import { lockOf } from '../../document.ts'
import type { Vault } from '../../store.ts'
import type { Driver } from '../connection/driver.ts'
import { isEmpty, lost, readHead, readRows } from './read.ts'
import { noRows, toDocument, toRows } from './rows.ts'
import { checkMasks, placeOf } from './stored.ts'
import { revision, tableNames } from '../tables.ts'
import { sentence } from '../connection/failures.ts'
import { plan, write } from './write.ts'

/** What a database holds, as a settings file says it. `locked`: whose secrets cannot be opened, in sentences. They have masks there; a section that has no table of its own is left out. */
export interface Exported { readonly document: Document, readonly locked: readonly string[] }

/** What the database holds, secrets in plain; undefined: nothing was ever stored. @throws Error with a sentence */
export async function exportDocument (driver: Driver, vault: Vault): Promise<Exported | undefined> {
  return await plainly(async () => {
    if (await readHead(driver.db) === undefined) {
      if (await isEmpty(driver.db)) return undefined
      throw lost()
    }
    const { rows } = await readRows(driver.db, vault)
    const locked = tableNames.flatMap((table) => rows[table].flatMap((row) => {
      const why = lockOf(row.entry)
      return why === undefined
        ? []
        : [`${table === 'sections' ? `The section ${JSON.stringify(row.name)}` : placeOf(table, row)} cannot be opened: ${why}`]
    }))
    return { document: toDocument({ ...rows, sections: rows.sections.filter(({ entry }) => lockOf(entry) === undefined) }), locked }
  })
}

/**
 * Stores a whole document in a database that is empty, in one commit; replicas that run take it up.
 * @param replace whether it takes the place of what is there
 * @throws Error with a sentence; nothing was changed then
 */
export async function importDocument (driver: Driver, vault: Vault, document: Document, replace: boolean): Promise<void> {
  const id = randomUUID()
  const rows = toRows(document)
  checkMasks(rows, vault)
  const changes = plan(noRows, rows, vault)
  await plainly(async () => {
    await driver.db.transaction(async (tx) => {
      await tx.insert(revision).values({ version: 0, head: id }).onConflictDoNothing()
      const [base] = await tx.select({ version: revision.version, head: revision.head }).from(revision).for('update')
      if (base === undefined) throw new Error('The table "revision" cannot be written.')
      if (!replace && !(await isEmpty(tx))) {
        throw new Error(
          'The database holds settings already, and was left as it is. Export them first if they matter; --replace puts the file in their place.'
        )
      }
      await write(tx, base, id, changes, true)
    })
  })
}

async function plainly<Result> (work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    throw new Error(sentence(error))
  }
}
