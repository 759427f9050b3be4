import type { Vault } from '../../store.ts'
import type { Db } from '../connection/driver.ts'
import { findClientsToReseal, resealClients } from './clients.ts'
import type { DatabaseState } from './read.ts'
import { resealRows } from './write.ts'

/** Max number of rows that are re-encrypted in one batch. */
const batchSize = 100

/**
 * Re-encrypts with the newest key those secrets of settings and clients that were encrypted with a former key.
 * @param runBatch runs one batch on the database, once earlier operations of the store have ended
 * @returns the number of re-encrypted rows, including rows of settings that were written meanwhile with the newest key
 */
export async function resealInBatches (
  { rows, outdated }: DatabaseState,
  vault: Vault,
  runBatch: <Result>(work: (db: Db) => Promise<Result>) => Promise<Result>
): Promise<number> {
  for (let at = 0; at < outdated.length; at += batchSize) {
    await runBatch(async (db) => { await resealRows(db, vault, rows, outdated.slice(at, at + batchSize)) })
  }
  const clients = await runBatch(async (db) => await findClientsToReseal(db, vault))
  let count = outdated.length
  for (let at = 0; at < clients.length; at += batchSize) {
    count += await runBatch(async (db) => await resealClients(db, vault, clients.slice(at, at + batchSize)))
  }
  return count
}
