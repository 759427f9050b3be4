import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { StorageError, type Vault } from '../../store.ts'
import type { Driver, Transaction } from '../connection/driver.ts'
import { readHead, type Found } from './read.ts'
import type { Rows } from './rows.ts'
import { isAway, isLostRace } from '../connection/failures.ts'
import type { CommitLock } from './commit-lock.ts'
import { patience, within } from '../connection/within.ts'
import { plan, wasMade, write } from './write.ts'

interface Commit {
  driver: Driver
  vault: Vault
  /** What the database held when the rows were worked out. */
  base: Found
  rows: Rows
  /** The transaction to make it in; undefined: one of its own. */
  turn: CommitLock | undefined
  /** Whether nobody waits for it any more. */
  isClosed: () => boolean
}

/**
 * Makes the database hold these rows, if nobody was faster.
 * @returns what it holds now; undefined: somebody was faster, and nothing was changed
 * @throws StorageError, or the driver's error when nothing was changed
 */
export async function commit ({ driver, vault, base, rows, turn, isClosed }: Commit): Promise<Found | undefined> {
  const changes = plan(base.rows, rows, vault)
  if (changes.size === 0) {
    const head = await within(driver, patience.look, readHead)
    return head?.version === base.version && head.head === base.head ? base : undefined
  }
  const id = randomUUID()
  let made = false
  const work = async (tx: Transaction): Promise<void> => { made = await write(tx, base, id, changes) }
  try {
    await within(driver, patience.write, async (db) => { await (turn ? turn.run(work) : db.transaction(work)) })
    if (!made) return undefined
  } catch (error) {
    if (isLostRace(error)) return undefined
    // Where COMMIT was on its way when the connection broke, it may have arrived.
    if (!made || !isAway(error) || !await find(driver, base, id, isClosed)) throw error
  }
  return { version: base.version + 1, head: id, rows, outdated: [] }
}

/** Finds out whether a commit was made. @throws StorageError when that cannot be had */
async function find (driver: Driver, base: Found, id: string, isClosed: () => boolean): Promise<boolean> {
  const until = Date.now() + patience.write
  while (!isClosed() && Date.now() <= until) {
    try {
      return await within(driver, patience.look, async (db) => await wasMade(db, base, id))
    } catch {
      await sleep(250)
    }
  }
  throw new StorageError(
    'The database went away while it was being written, so it is not known whether the change was made. Look again when it is back.',
    false
  )
}
