import type { Vault } from '../../store.ts'
import type { Db } from '../connection/driver.ts'
import { outdatedClients, resealClients } from './clients.ts'
import type { DatabaseState } from './read.ts'
import { reseal } from './write.ts'

/** Max rows that are re-encrypted in one batch. */
const resealedAtOnce = 100

/**
 * Re-encrypts with the newest key the secrets of settings and clients that a former key has encrypted.
 * @param inTurn runs one batch
 * @returns the number of rows
 */
export async function resealInTurns (
  { rows, outdated }: DatabaseState,
  vault: Vault,
  inTurn: <Result>(work: (db: Db) => Promise<Result>) => Promise<Result>
): Promise<number> {
  for (let at = 0; at < outdated.length; at += resealedAtOnce) {
    await inTurn(async (db) => { await reseal(db, vault, rows, outdated.slice(at, at + resealedAtOnce)) })
  }
  const clients = await inTurn(async (db) => await outdatedClients(db, vault))
  for (let at = 0; at < clients.length; at += resealedAtOnce) {
    await inTurn(async (db) => { await resealClients(db, vault, clients.slice(at, at + resealedAtOnce)) })
  }
  return outdated.length + clients.length
}
