import { and, eq, gt, inArray, lt, sql, type SQL } from 'drizzle-orm'
import { most, remembered, type Authorization, type Issued, type Revocation, type Token, type Tokens } from '../../ports.ts'
import { Sweep, type QueryRunner } from '../connection/query-runner.ts'
import type { Transaction } from '../connection/driver.ts'
import { tokenFamilies as families, tokens } from '../tables.ts'

const inAnHour = sql`now() + ${remembered} * interval '1 millisecond'`
const ended = { revoked: true, expires: sql`greatest(${families.expires}, ${inAnHour})` }
/** When the last of them expires. */
const lastOf = (issued: readonly Issued[]): Date => new Date(Math.max(0, ...issued.map(({ expiresAt }) => expiresAt)))
const notBefore = (date: Date): SQL => sql`greatest(${families.expires}, ${date.toISOString()}::timestamptz)`

/** Tokens that all replicas share. Whoever changes a family holds its row, so there is an order of who swapped and who was late. */
export class PostgresTokens implements Tokens {
  readonly #asks: QueryRunner
  readonly #sweep: Sweep

  /** @param count how many tokens are kept */
  constructor (asks: QueryRunner, count: number = most.tokens) {
    this.#asks = asks
    this.#sweep = new Sweep(async () => {
      await asks.slow(async (db) => await db.delete(families).where(lt(families.expires, sql`now()`)))
      await asks.slow(async (db) => await db.delete(tokens).where(lt(tokens.expires, sql`now()`)))
      await asks.slow(
        async (db) =>
          await db.execute(sql`with gone as (delete from ${families} where family in (select family from (
        select family, sum(count(*)) over (order by count(*), max(expires) desc, family) as running from ${tokens} group by family) as sizes where running > ${count}) returning family)
        delete from ${tokens} where family in (select family from gone)`)
      )
    })
  }

  async put ({ family, clientId, username }: Authorization, issued: readonly Issued[]): Promise<void> {
    await this.#asks.transact(async (tx) => {
      const expires = lastOf(issued)
      await tx
        .insert(families)
        .values({ family, clientId, username, expires })
        .onConflictDoUpdate({ target: families.family, set: { expires: notBefore(expires) } })
      await insert(tx, family, issued)
    })
    this.#sweep.pass()
  }

  async find (hash: string): Promise<Token | undefined> {
    const [found] = await this.#asks.quick(
      async (db) =>
        await db
          .select()
          .from(tokens)
          .innerJoin(families, eq(families.family, tokens.family))
          .where(and(eq(tokens.hash, hash), eq(tokens.used, false), eq(families.revoked, false), gt(tokens.expires, sql`now()`)))
    )
    if (found === undefined) return undefined
    const { tokens: { family, kind, scope, resource, expires }, token_families: { clientId, username } } = found
    return {
      hash,
      kind,
      family,
      clientId: clientId ?? '',
      ...(username === null ? {} : { username }),
      scope,
      ...(resource === null ? {} : { resource }),
      expiresAt: expires.getTime()
    }
  }

  async swap (hash: string, issued: readonly Issued[]): Promise<'swapped' | 'reused' | 'unknown'> {
    const outcome = await this.#asks.transact(async (tx) => {
      const one = and(eq(tokens.hash, hash), eq(tokens.kind, 'refresh'), gt(tokens.expires, sql`now()`))
      const [held] = await tx
        .select()
        .from(families)
        .where(inArray(families.family, tx.select({ family: tokens.family }).from(tokens).where(one)))
        .for('update')
      // Looked at only now: whoever was faster has held the family until here.
      const [token] = await tx.select({ used: tokens.used }).from(tokens).where(one)
      if (held === undefined || token === undefined || (held.revoked && !token.used)) return 'unknown'
      const family = eq(families.family, held.family)
      if (token.used) {
        await tx.update(families).set(ended).where(family)
        return 'reused'
      }
      await tx.update(tokens).set({ used: true }).where(one)
      await tx.update(families).set({ expires: notBefore(lastOf(issued)) }).where(family)
      await insert(tx, held.family, issued)
      return 'swapped'
    })
    this.#sweep.pass()
    return outcome
  }

  async revoke (what: Revocation): Promise<void> {
    await this.#asks.quick(async (db) => {
      // What was used stays: it tells when it is used again.
      if ('hash' in what) await db.delete(tokens).where(and(eq(tokens.hash, what.hash), eq(tokens.used, false)))
      // Also one that has no tokens yet: they may be on their way.
      else if ('family' in what) {
        await db
          .insert(families)
          .values({ family: what.family, revoked: true, expires: inAnHour })
          .onConflictDoUpdate({ target: families.family, set: ended })
      } else {
        // In one order, so that two of these never wait for each other.
        const all = db
          .select({ family: families.family })
          .from(families)
          .where('clientId' in what ? eq(families.clientId, what.clientId) : eq(families.username, what.username))
          .orderBy(families.family)
          .for('update')
        await db.update(families).set(ended).where(inArray(families.family, all))
      }
    })
  }
}

async function insert (tx: Transaction, family: string, issued: readonly Issued[]): Promise<void> {
  if (issued.length > 0) {
    await tx
      .insert(tokens)
      .values(
        issued.map(({ hash, kind, scope, resource, expiresAt }) => ({ hash, family, kind, scope, resource, expires: new Date(expiresAt) }))
      )
  }
}
