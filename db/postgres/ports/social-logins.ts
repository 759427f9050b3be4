import { and, desc, eq, inArray, lt, sql } from 'drizzle-orm'
import type { SocialIdentityLink, SocialLogins } from '../../ports/social-logins.ts'
import type { QueryRunner } from '../connection/query-runner.ts'
import { socialIdentities as identities, socialSessions as sessions, socialUsers as users } from '../social-tables.ts'
import { toIndexableText } from '../text.ts'
import { ThrottledCleanup } from './throttled-cleanup.ts'

/** Stores the identities and sessions of social login, which all replicas share. */
export class PostgresSocialLogins implements SocialLogins {
  readonly #queries: QueryRunner
  readonly #cleanup: ThrottledCleanup

  constructor (queries: QueryRunner) {
    this.#queries = queries
    this.#cleanup = new ThrottledCleanup(async () =>
      await queries.runSlow(async (db) => await db.delete(sessions).where(lt(sessions.expiresAt, sql`now()`))))
  }

  async loadAdapter (): Promise<object> {
    const { createBetterAuthAdapter: betterAuthDatabase } = await import('../better-auth.ts')
    return betterAuthDatabase(this.#queries)
  }

  async find (hash: string): Promise<SocialIdentityLink | undefined> {
    const [found] =
      await this.#queries.runQuick(async (db) => await db.select().from(identities).where(eq(identities.hash, hash)))
    return found
  }

  async put ({ hash, ...identity }: SocialIdentityLink): Promise<void> {
    const row = { ...identity, username: toIndexableText(identity.username), bound: new Date() }
    await this.#queries.runQuick(async (db) => {
      await db.insert(identities).values({ hash, ...row }).onConflictDoUpdate({ target: identities.hash, set: row })
    })
  }

  async remove (hash: string): Promise<void> {
    await this.#queries.runQuick(async (db) => { await db.delete(identities).where(eq(identities.hash, hash)) })
  }

  async findCreatingIdentity (username: string, subject: string): Promise<SocialIdentityLink | undefined> {
    const [found] = await this.#queries.runQuick(async (db) =>
      await db
        .select()
        .from(identities)
        .where(and(
          eq(identities.username, toIndexableText(username)),
          eq(identities.subject, subject),
          eq(identities.created, true)
        )))
    return found
  }

  async removeIdentities (username: string, subject: string, emailOf: (hash: string) => string): Promise<void> {
    await this.#queries.runTransaction(async (tx) => {
      const gone = await tx
        .delete(identities)
        .where(and(eq(identities.username, toIndexableText(username)), eq(identities.subject, subject)))
        .returning({ hash: identities.hash })
      if (gone.length > 0) await tx.delete(users).where(inArray(users.email, gone.map(({ hash }) => emailOf(hash))))
    })
  }

  async trimSessions (userId: string, max: number): Promise<void> {
    await this.#queries.runTransaction(async (tx) => {
      const excess = tx
        .select({ id: sessions.id })
        .from(sessions)
        .where(eq(sessions.userId, userId))
        .orderBy(desc(sessions.createdAt))
        .offset(max)
      await tx.delete(sessions).where(inArray(sessions.id, excess))
    })
    this.#cleanup.runIfDue()
  }
}
