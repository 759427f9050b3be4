import { and, eq, gt, inArray, lt, sql, type SQL } from 'drizzle-orm'
import { maxRecords, retention, type TokenFamily, type IssuedToken, type Revocation, type StoredToken, type Tokens } from '../../ports.ts'
import type { QueryRunner } from '../connection/query-runner.ts'
import type { Db, Transaction } from '../connection/driver.ts'
import { tokenFamilies as families, tokens } from '../tables.ts'
import { escape, unescape } from '../text.ts'
import { PeriodicCleanup } from './periodic-cleanup.ts'

/** When a revoked family may be forgotten. */
const retentionEnd = sql`now() + ${retention} * interval '1 millisecond'`
const revoked = { revoked: true, revokedAt: sql`now()`, expires: sql`greatest(${families.expires}, ${retentionEnd})` }
/** The latest expiry of some tokens. */
const latestExpiry = (issued: readonly IssuedToken[]): Date => new Date(Math.max(0, ...issued.map(({ expiresAt }) => expiresAt)))
/** The family's expiry, moved to this date if that is later. */
const extendedTo = (date: Date): SQL => sql`greatest(${families.expires}, ${date.toISOString()}::timestamptz)`

/** Tokens shared by all replicas. Each change locks the row of the family, so that concurrent swaps are ordered and one is the first. */
export class PostgresTokens implements Tokens {
  readonly #queries: QueryRunner
  readonly #cleanup: PeriodicCleanup

  /** @param count max tokens kept; beyond, the families with the most tokens are removed */
  constructor (queries: QueryRunner, count: number = maxRecords.tokens) {
    this.#queries = queries
    this.#cleanup = new PeriodicCleanup(async () => {
      await queries.slow(async (db) => await db.delete(families).where(lt(families.expires, sql`now()`)))
      await queries.slow(async (db) => await db.delete(tokens).where(lt(tokens.expires, sql`now()`)))
      await queries.slow(
        async (db) =>
          await db.execute(sql`
            with sizes as (
              select family, sum(count(*)) over (order by count(*), max(expires) desc, family) as running from ${tokens} group by family
            ), removed as (
              delete from ${families} where family in (select family from sizes where running > ${count}) returning family
            )
            delete from ${tokens} where family in (select family from removed)`)
      )
    })
  }

  async put ({ family, clientId, username, mark }: TokenFamily, issued: readonly IssuedToken[]): Promise<void> {
    await this.#queries.transact(async (tx) => {
      const expires = latestExpiry(issued)
      await tx
        .insert(families)
        .values({ family, clientId: escape(clientId), username: username === undefined ? undefined : escape(username), mark, expires })
        .onConflictDoUpdate({ target: families.family, set: { expires: extendedTo(expires) } })
      await insert(tx, family, issued)
    })
    this.#cleanup.runIfDue()
  }

  async find (hash: string): Promise<StoredToken | undefined> {
    const [found] = await this.#queries.quick(async (db) => await selectToken(db, hash))
    if (found === undefined) return undefined
    const { tokens: { family, kind, scope, resource, expires }, token_families: { clientId, username, mark } } = found
    return {
      hash,
      kind,
      family,
      clientId: unescape(clientId ?? ''),
      ...(username === null ? {} : { username: unescape(username) }),
      ...(mark === null ? {} : { mark }),
      scope: unescape(scope),
      ...(resource === null ? {} : { resource: unescape(resource) }),
      expiresAt: expires.getTime()
    }
  }

  async revokedWithin (time: number): Promise<string[]> {
    const found = await this.#queries.quick(
      async (db) =>
        await db
          .select({ family: families.family })
          .from(families)
          .where(gt(families.revokedAt, sql`now() - ${time} * interval '1 millisecond'`))
    )
    return found.map(({ family }) => family)
  }

  async swap (hash: string, issued: readonly IssuedToken[]): Promise<'swapped' | 'reused' | 'unknown'> {
    const outcome = await this.#queries.transact(async (tx) => {
      const isToken = and(eq(tokens.hash, hash), eq(tokens.kind, 'refresh'), gt(tokens.expires, sql`now()`))
      const [held] = await tx
        .select()
        .from(families)
        .where(inArray(families.family, tx.select({ family: tokens.family }).from(tokens).where(isToken)))
        .for('update')
      // Read only after the family was locked: a faster caller held that lock until it had swapped.
      const [token] = await tx.select({ used: tokens.used }).from(tokens).where(isToken)
      if (held === undefined || token === undefined || (held.revoked && !token.used)) return 'unknown'
      const isFamily = eq(families.family, held.family)
      if (token.used) {
        await tx.update(families).set(revoked).where(isFamily)
        return 'reused'
      }
      await tx.update(tokens).set({ used: true }).where(isToken)
      await tx.update(families).set({ expires: extendedTo(latestExpiry(issued)) }).where(isFamily)
      await insert(tx, held.family, issued)
      return 'swapped'
    })
    this.#cleanup.runIfDue()
    return outcome
  }

  async revoke (target: Revocation): Promise<void> {
    await this.#queries.quick(async (db) => {
      // A used token is kept, so that its reuse is detected.
      if ('hash' in target) await db.delete(tokens).where(and(eq(tokens.hash, target.hash), eq(tokens.used, false)))
      // Also a family without tokens: another replica may be about to add some.
      else if ('family' in target) {
        await db
          .insert(families)
          .values({ family: target.family, revoked: true, revokedAt: sql`now()`, expires: retentionEnd })
          .onConflictDoUpdate({ target: families.family, set: revoked })
      } else {
        await revokeFamilies(
          db,
          and(
            target.clientId === undefined ? undefined : eq(families.clientId, escape(target.clientId)),
            target.username === undefined ? undefined : eq(families.username, escape(target.username)),
            'mark' in target && target.mark !== undefined ? eq(families.mark, target.mark) : undefined
          )
        )
      }
    })
  }
}

const isValid = and(eq(tokens.used, false), eq(families.revoked, false), gt(tokens.expires, sql`now()`))

/** The query of `find`. Exported for the test of its plan. */
export const selectToken = (db: Db, hash: string) =>
  db.select().from(tokens).innerJoin(families, eq(families.family, tokens.family)).where(and(eq(tokens.hash, hash), isValid))

/** Revokes families of tokens. They are locked in a fixed order, so that two revocations cannot deadlock. */
export async function revokeFamilies (db: Db, which: SQL | undefined): Promise<void> {
  const affected = db.select({ family: families.family }).from(families).where(which).orderBy(families.family).for('update')
  await db.update(families).set(revoked).where(inArray(families.family, affected))
}

async function insert (tx: Transaction, family: string, issued: readonly IssuedToken[]): Promise<void> {
  if (issued.length > 0) {
    await tx
      .insert(tokens)
      .values(
        issued.map(({ hash, kind, scope, resource, expiresAt }) => ({
          hash,
          family,
          kind,
          scope: escape(scope),
          resource: resource === undefined ? undefined : escape(resource),
          expires: new Date(expiresAt)
        }))
      )
  }
}
