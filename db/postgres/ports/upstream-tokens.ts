import { createHash, randomUUID } from 'node:crypto'
import { and, eq, gt, isNotNull, isNull, lt, or, sql } from 'drizzle-orm'
import { maxRecords, retention, type LoginChange, type StoredLogin, type UpstreamTokens } from '../../ports.ts'
import type { Vault } from '../../store.ts'
import type { QueryRunner } from '../connection/query-runner.ts'
import { openText, sealText, type SealedText } from '../sealed-text.ts'
import { upstreamTokens as logins } from '../tables.ts'
import { indexable, unescape } from '../text.ts'
import { PeriodicCleanup } from './periodic-cleanup.ts'

const keyOf = (server: string, holder: string): string => createHash('sha256').update(JSON.stringify([server, holder])).digest('hex')
/** The place that a value is sealed for: it cannot be opened as another one's. */
export const upstreamTokenPlace = (key: string): string => `upstream-tokens/${key}`
const removed = { version: null, data: null, sealed: null, claimed: null, changed: sql`now()` }

/** Logins at upstreams, shared by all replicas. A removed one leaves its row for an hour, so that every replica hears of it. */
export class PostgresUpstreamTokens implements UpstreamTokens {
  readonly #queries: QueryRunner
  readonly #vault: Vault
  readonly #cleanup: PeriodicCleanup

  /** @param count max values kept; beyond, those that were unchanged longest are removed */
  constructor (queries: QueryRunner, vault: Vault, count: number = maxRecords.upstreamTokens) {
    this.#queries = queries
    this.#vault = vault
    this.#cleanup = new PeriodicCleanup(async () => {
      const isForgotten = and(isNull(logins.version), lt(logins.changed, sql`now() - ${retention} * interval '1 millisecond'`))
      await queries.slow(async (db) => await db.delete(logins).where(isForgotten))
      await queries.slow(
        async (db) =>
          await db.execute(
            sql`delete from ${logins} where key in (select key from ${logins} order by changed desc offset ${count})`
          )
      )
    })
  }

  /** A value whose key is gone counts as none: whoever it is for logs in again. */
  async find (server: string, holder: string): Promise<StoredLogin | undefined> {
    const key = keyOf(server, holder)
    const [found] = await this.#queries.quick(
      async (db) =>
        await db.select({ version: logins.version, data: logins.data, sealed: logins.sealed }).from(logins).where(eq(logins.key, key))
    )
    if (!found?.data || found.version === null) return undefined
    const opened = this.#open(key, { data: found.data, sealed: found.sealed })
    return opened && { version: found.version, ...opened }
  }

  #open (key: string, stored: SealedText): { value: unknown } | undefined {
    try {
      return { value: JSON.parse(openText(this.#vault, stored, upstreamTokenPlace(key))) as unknown }
    } catch {
      return undefined
    }
  }

  /** The version of a value that cannot be opened, and so counts as none. */
  async #lockedVersion (key: string): Promise<string | undefined> {
    const [found] = await this.#queries.quick(async (db) =>
      await db.select({ version: logins.version, data: logins.data, sealed: logins.sealed }).from(logins).where(eq(logins.key, key)))
    if (!found?.data || found.version === null) return undefined
    return this.#open(key, { data: found.data, sealed: found.sealed }) === undefined ? found.version : undefined
  }

  async swap (
    server: string,
    holder: string,
    replaces: { readonly version: string } | 'any' | undefined,
    value: unknown
  ): Promise<string | undefined> {
    const key = keyOf(server, holder)
    const version = randomUUID()
    const set = { version, ...sealText(this.#vault, JSON.stringify(value), upstreamTokenPlace(key)), claimed: null, changed: sql`now()` }
    const row = { key, server: indexable(server), holder: indexable(holder), ...set }
    const [stored] = await this.#queries.quick(async (db) => {
      if (typeof replaces === 'object') {
        return await db.update(logins).set(set).where(and(eq(logins.key, key), eq(logins.version, replaces.version))).returning()
      }
      return await db
        .insert(logins)
        .values(row)
        .onConflictDoUpdate({ target: logins.key, set, setWhere: replaces === 'any' ? undefined : isNull(logins.version) })
        .returning()
    })
    this.#cleanup.runIfDue()
    if (stored || replaces !== undefined) return stored && version
    const locked = await this.#lockedVersion(key)
    return locked === undefined ? undefined : await this.swap(server, holder, { version: locked }, value)
  }

  async claim (server: string, holder: string, version: string, time: number): Promise<boolean> {
    const isFree = or(isNull(logins.claimed), lt(logins.claimed, sql`now()`))
    const claimed = await this.#queries.quick(
      async (db) =>
        await db
          .update(logins)
          .set({ claimed: sql`now() + ${time} * interval '1 millisecond'` })
          .where(and(eq(logins.key, keyOf(server, holder)), eq(logins.version, version), isFree))
          .returning({ key: logins.key })
    )
    return claimed.length > 0
  }

  async remove (server: string, holder: string): Promise<boolean> {
    const gone = await this.#queries.quick(
      async (db) =>
        await db
          .update(logins)
          .set(removed)
          .where(and(eq(logins.key, keyOf(server, holder)), isNotNull(logins.version)))
          .returning({ key: logins.key })
    )
    return gone.length > 0
  }

  async removeAll (target: { readonly server: string } | { readonly holder: string }): Promise<void> {
    const which = 'server' in target ? eq(logins.server, indexable(target.server)) : eq(logins.holder, indexable(target.holder))
    await this.#queries.quick(async (db) => { await db.update(logins).set(removed).where(and(which, isNotNull(logins.version))) })
  }

  async changedWithin (time: number): Promise<LoginChange[]> {
    const found = await this.#queries.quick(
      async (db) =>
        await db
          .select({ server: logins.server, holder: logins.holder, version: logins.version })
          .from(logins)
          .where(gt(logins.changed, sql`now() - ${time} * interval '1 millisecond'`))
    )
    return found.map(({ server, holder, version }) => ({
      server: unescape(server),
      holder: unescape(holder),
      version: version ?? undefined
    }))
  }
}
