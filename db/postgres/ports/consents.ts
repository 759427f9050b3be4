import { and, desc, eq, inArray, sql, type SQL } from 'drizzle-orm'
import { maxRecords, type Bounds, type Consent, type Consents } from '../../ports.ts'
import type { QueryRunner } from '../connection/query-runner.ts'
import { oauthConsents as consents } from '../tables.ts'
import { indexable } from '../text.ts'
import { PeriodicCleanup } from './periodic-cleanup.ts'

const ofUser = (username: string): SQL => eq(consents.username, indexable(username))
const toClient = (clientId: string): SQL => eq(consents.clientKey, indexable(clientId))

/** Consents shared by all replicas. */
export class PostgresConsents implements Consents {
  readonly #queries: QueryRunner
  readonly #maxPerUser: number
  readonly #cleanup: PeriodicCleanup

  constructor (queries: QueryRunner, bounds: Bounds = { perUser: maxRecords.consentsPerUser, all: maxRecords.consents }) {
    this.#queries = queries
    this.#maxPerUser = bounds.perUser
    this.#cleanup = new PeriodicCleanup(
      async () => await queries.slow(
        async (db) =>
          await db.execute(sql`
            delete from ${consents} where (username, client_key) in (
              select username, client_key from ${consents} order by granted desc offset ${bounds.all}
            )`)
      )
    )
  }

  async put ({ username, clientId, scope, resource, mark, grantedAt }: Consent): Promise<void> {
    const row = {
      username: indexable(username),
      clientKey: indexable(clientId),
      data: JSON.stringify({ username, clientId, scope, resource, mark, grantedAt }),
      granted: new Date(grantedAt)
    }
    await this.#queries.transact(async (tx) => {
      await tx
        .insert(consents)
        .values(row)
        .onConflictDoUpdate({ target: [consents.username, consents.clientKey], set: { data: row.data, granted: row.granted } })
      // Rows that somebody else is changing are skipped, so that two transactions cannot wait for each other.
      const excess = tx
        .select({ clientKey: consents.clientKey })
        .from(consents)
        .where(ofUser(username))
        .orderBy(desc(consents.granted))
        .offset(this.#maxPerUser)
        .for('update', { skipLocked: true })
      await tx.delete(consents).where(and(ofUser(username), inArray(consents.clientKey, excess)))
    })
    this.#cleanup.runIfDue()
  }

  async find (username: string, clientId: string): Promise<Consent | undefined> {
    const [found] = await this.#queries.quick(
      async (db) => await db.select({ data: consents.data }).from(consents).where(and(ofUser(username), toClient(clientId)))
    )
    return found && read(found)
  }

  async list (username: string): Promise<Consent[]> {
    const found = await this.#queries.quick(
      async (db) => await db.select({ data: consents.data }).from(consents).where(ofUser(username)).orderBy(desc(consents.granted))
    )
    return found.map(read)
  }

  async remove (username: string, clientId: string): Promise<boolean> {
    const removed = await this.#queries.quick(
      async (db) =>
        await db.delete(consents).where(and(ofUser(username), toClient(clientId))).returning({ clientKey: consents.clientKey })
    )
    return removed.length > 0
  }

  async removeAll (target: { readonly username: string } | { readonly clientId: string }): Promise<void> {
    await this.#queries.quick(async (db) => {
      await db.delete(consents).where('username' in target ? ofUser(target.username) : toClient(target.clientId))
    })
  }
}

const read = ({ data }: { data: string }): Consent => JSON.parse(data) as Consent
