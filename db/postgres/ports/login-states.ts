import { and, desc, eq, gt, inArray, lt, sql, type SQL } from 'drizzle-orm'
import { maxRecords, type Bounds, type LoginState, type LoginStates } from '../../ports.ts'
import type { Vault } from '../../store.ts'
import type { QueryRunner } from '../connection/query-runner.ts'
import { openText, sealText, type SealedText } from '../sealed-text.ts'
import { loginStates as states } from '../tables.ts'
import { indexable } from '../text.ts'
import { PeriodicCleanup } from './periodic-cleanup.ts'

/** The place that a state is sealed for: it cannot be opened under another hash. */
export const loginStatePlace = (hash: string): string => `login-states/${hash}`

/** States of browsers, shared by all replicas. */
export class PostgresLoginStates implements LoginStates {
  readonly #queries: QueryRunner
  readonly #vault: Vault
  readonly #maxPerUser: number
  readonly #cleanup: PeriodicCleanup

  constructor (
    queries: QueryRunner,
    vault: Vault,
    bounds: Bounds = { perUser: maxRecords.loginStatesPerUser, all: maxRecords.loginStates }
  ) {
    this.#queries = queries
    this.#vault = vault
    this.#maxPerUser = bounds.perUser
    this.#cleanup = new PeriodicCleanup(async () => {
      await queries.slow(async (db) => await db.delete(states).where(lt(states.expires, sql`now()`)))
      await queries.slow(
        async (db) =>
          await db.execute(
            sql`delete from ${states} where hash in (select hash from ${states} order by created desc offset ${bounds.all})`
          )
      )
    })
  }

  async put (hash: string, state: LoginState, expiresAt: number): Promise<void> {
    const username = state.username === undefined ? null : indexable(state.username)
    const row = {
      uid: state.uid ?? null,
      username,
      ...sealText(this.#vault, JSON.stringify(state), loginStatePlace(hash)),
      created: new Date(state.createdAt),
      expires: new Date(expiresAt)
    }
    await this.#queries.transact(async (tx) => {
      await tx.insert(states).values({ hash, ...row }).onConflictDoUpdate({ target: states.hash, set: row })
      if (username === null) return
      const ofUser = eq(states.username, username)
      // Rows that somebody else is changing are skipped, so that two transactions cannot wait for each other.
      const excess = tx
        .select({ hash: states.hash })
        .from(states)
        .where(ofUser)
        .orderBy(desc(states.created))
        .offset(this.#maxPerUser)
        .for('update', { skipLocked: true })
      await tx.delete(states).where(and(ofUser, inArray(states.hash, excess)))
    })
    this.#cleanup.runIfDue()
  }

  async find (hash: string): Promise<LoginState | undefined> {
    return await this.#find(eq(states.hash, hash))
  }

  async findByUid (uid: string): Promise<LoginState | undefined> {
    return await this.#find(eq(states.uid, uid))
  }

  async remove (hash: string): Promise<void> {
    await this.#queries.quick(async (db) => { await db.delete(states).where(eq(states.hash, hash)) })
  }

  async removeAll (username: string): Promise<void> {
    await this.#queries.quick(async (db) => { await db.delete(states).where(eq(states.username, indexable(username))) })
  }

  async #find (which: SQL): Promise<LoginState | undefined> {
    const [found] = await this.#queries.quick(
      async (db) =>
        await db
          .select({ hash: states.hash, data: states.data, sealed: states.sealed })
          .from(states)
          .where(and(which, gt(states.expires, sql`now()`)))
    )
    return found && this.#open(found, found.hash)
  }

  /** Opens a state. One that was sealed with a key that is gone has ended: the user logs in again. */
  #open (stored: SealedText, hash: string): LoginState | undefined {
    try {
      return JSON.parse(openText(this.#vault, stored, loginStatePlace(hash))) as LoginState
    } catch {
      return undefined
    }
  }
}
