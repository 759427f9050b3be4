import { randomUUID } from 'node:crypto'
import type { Vault } from '../../store.ts'
import type { Driver } from '../connection/driver.ts'
import { timeouts, withTimeout } from '../connection/timeouts.ts'
import { readRows, type DatabaseState } from './read.ts'
import { withOwnTables } from './rows.ts'
import { planWrites, write } from './write.ts'

/**
 * Moves sections that have a table of their own now, and had none in an earlier version of Tool-Hub, into their tables.
 * @returns the new state; the same one if nothing was moved
 */
export async function moveSections (driver: Driver, vault: Vault, state: DatabaseState): Promise<DatabaseState> {
  for (let now = state; ;) {
    const base = now
    const rows = withOwnTables(base.rows)
    if (rows === base.rows) return base
    const id = randomUUID()
    const writes = planWrites(base.rows, rows, vault)
    const isMoved = await withTimeout(driver, timeouts.seed, async (db) =>
      await db.transaction(async (tx) => await write(tx, base, id, writes)))
    if (isMoved) {
      const outdated = base.outdated.filter(({ table, row }) => table !== 'sections' || rows.sections.includes(row))
      return { version: base.version + 1, head: id, rows, outdated }
    }
    now = await withTimeout(driver, timeouts.read, async (db) => await readRows(db, vault, base))
  }
}
