import { and, desc, eq, gt, inArray, isNull, lte, ne, or, sql, type SQL } from 'drizzle-orm'
import {
  maxClientIdleTime, maxRegisteredClients, touchInterval, type OAuthClient, type OAuthClients, type ListRange
} from '../../ports/clients.ts'
import { clientOfRow, toClientColumns, removeClientAuthorizations } from '../client-rows.ts'
import type { QueryRunner } from '../connection/query-runner.ts'
import type { Transaction } from '../connection/driver.ts'
import { oauthClients as clients } from '../tables.ts'
import { toIndexableText } from '../text.ts'
import { ThrottledCleanup } from './throttled-cleanup.ts'

const hasId = (clientId: string): SQL => eq(clients.key, toIndexableText(clientId))
const isRegistered = eq(clients.origin, 'registered')
const idleLimit = (): Date => new Date(Date.now() - maxClientIdleTime)
/** Returns the negation of `isIdleClient` as an SQL condition. */
const isNotIdle = (): SQL | undefined => or(ne(clients.origin, 'registered'), gt(clients.idleSince, idleLimit()))
/**
 * The creation time of a client, extracted from its JSON text by a regular expression, since JSON functions would fail
 * for a client with U+0000 in a string. The expression cannot match within a string, where quotes are escaped.
 */
const createdAt = sql`coalesce(substring(${clients.data} from '"createdAt":([0-9]+)')::numeric, 0)`
const columns = { data: clients.data, lastUsed: clients.lastUsed }

/** Max number of clients for which the time of the last write by `touch` is kept in memory. */
const maxTouched = 10_000

/**
 * Stores the clients that all replicas share. A transaction locks the row of a client first, then the rows of its
 * tokens.
 */
export class PostgresClients implements OAuthClients {
  readonly #queries: QueryRunner
  readonly #maxRegistered: number
  /** Removes idle clients at intervals, while clients are used. */
  readonly #cleanup: ThrottledCleanup
  /**
   * When this replica last recorded the use of a client, in ms since 1970, by client id; the first entry is the oldest.
   */
  readonly #touched = new Map<string, number>()

  constructor (queries: QueryRunner, maxRegistered: number = maxRegisteredClients) {
    this.#queries = queries
    this.#maxRegistered = maxRegistered
    this.#cleanup = new ThrottledCleanup(
      async () => {
        await queries.runTransaction(async (tx) => { await removeClientAuthorizations(tx, await removeIdle(tx)) })
      }
    )
  }

  async find (clientId: string): Promise<OAuthClient | undefined> {
    const [found] = await this.#queries.runQuick(
      async (db) => await db.select(columns).from(clients).where(and(hasId(clientId), isNotIdle()))
    )
    return found && clientOfRow(found)
  }

  async list (range?: ListRange): Promise<OAuthClient[]> {
    const found = await this.#queries.runSlow(async (db) => {
      const all = db.select(columns).from(clients).where(isNotIdle())
        .orderBy(createdAt, sql`${clients.key} collate "C"`)
      return await (range === undefined ? all : all.offset(range.offset).limit(range.limit))
    })
    return found.map(clientOfRow)
  }

  async count (): Promise<number> {
    return await this.#queries.runSlow(async (db) => await db.$count(clients, isNotIdle()))
  }

  async create (client: OAuthClient): Promise<boolean> {
    this.#touched.delete(client.clientId)
    return await this.#queries.runTransaction(async (tx) => {
      const idle = await removeIdle(tx)
      const created =
        await tx.insert(clients).values(toClientColumns(client)).onConflictDoNothing().returning({ key: clients.key })
      await removeClientAuthorizations(tx, [...idle, ...await this.#removeExcess(tx)])
      return created.length > 0
    })
  }

  async replace (clientId: string, change: (client: OAuthClient) => OAuthClient): Promise<OAuthClient | undefined> {
    return await this.#queries.runTransaction(async (tx) => {
      const [found] = await tx.select(columns).from(clients).where(and(hasId(clientId), isNotIdle())).for('update')
      if (found === undefined) return undefined
      const changed = toClientColumns({ ...change(clientOfRow(found)), clientId })
      await tx.update(clients).set(changed).where(hasId(clientId))
      return clientOfRow({ data: changed.data, lastUsed: changed.lastUsed ?? null })
    })
  }

  async remove (clientId: string): Promise<boolean> {
    this.#touched.delete(clientId)
    return await this.#queries.runTransaction(async (tx) => {
      const removed = await tx.delete(clients).where(hasId(clientId)).returning({ data: clients.data })
      await removeClientAuthorizations(tx, removed)
      return removed.length > 0
    })
  }

  async touch (clientId: string, at: number): Promise<void> {
    if (at - (this.#touched.get(clientId) ?? 0) < touchInterval) return
    this.#remember(clientId, at)
    const time = new Date(at)
    const isDue = or(isNull(clients.lastUsed), lte(clients.lastUsed, new Date(at - touchInterval)))
    try {
      await this.#queries.runQuick(async (db) => {
        await db.update(clients).set({ lastUsed: time, idleSince: time })
          .where(and(hasId(clientId), isNotIdle(), isDue))
      })
      this.#cleanup.runIfDue()
    } catch {
      // A failed write is ignored, since the next use of the client is recorded.
      this.#touched.delete(clientId)
    }
  }

  /**
   * Removes self-registered clients beyond the limit, as `maxRegisteredClients` describes.
   * @returns the removed rows
   */
  async #removeExcess (tx: Transaction): Promise<Array<{ data: string }>> {
    // Whether there are too many clients is read from an index first, since ranking all clients takes longer.
    const [tooMany] = await tx
      .select({ key: clients.key })
      .from(clients)
      .where(isRegistered)
      .orderBy(desc(clients.idleSince))
      .offset(this.#maxRegistered)
      .limit(1)
    if (tooMany === undefined) return []
    const isUnused = isNull(clients.lastUsed)
    const rank = sql`row_number() over (partition by ${isUnused} order by ${clients.idleSince} desc)`
    const ranked = tx
      .select({
        key: clients.key,
        idleSince: clients.idleSince,
        isSpare: sql<boolean>`${isUnused} and ${rank} > ${Math.floor(this.#maxRegistered / 4)}`.as('is_spare')
      })
      .from(clients)
      .where(isRegistered)
      .as('ranked')
    const excess = tx
      .select({ key: ranked.key })
      .from(ranked)
      .orderBy(ranked.isSpare, desc(ranked.idleSince))
      .offset(this.#maxRegistered)
    return await removeRegistered(tx, inArray(clients.key, excess))
  }

  #remember (clientId: string, at: number): void {
    this.#touched.delete(clientId)
    this.#touched.set(clientId, at)
    const oldest = this.#touched.size > maxTouched ? this.#touched.keys().next().value : undefined
    if (oldest !== undefined) this.#touched.delete(oldest)
  }
}

/**
 * Removes matching self-registered clients. Rows locked by other transactions are skipped, which excludes deadlocks.
 */
async function removeRegistered (tx: Transaction, condition: SQL): Promise<Array<{ data: string }>> {
  const removable = tx
    .select({ key: clients.key })
    .from(clients)
    .where(and(isRegistered, condition))
    .for('update', { skipLocked: true })
  return await tx.delete(clients).where(inArray(clients.key, removable)).returning({ data: clients.data })
}

const removeIdle = async (tx: Transaction): Promise<Array<{ data: string }>> =>
  await removeRegistered(tx, lte(clients.idleSince, idleLimit()))
