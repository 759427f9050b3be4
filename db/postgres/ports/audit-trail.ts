import { and, desc, eq, gte, inArray, lt, lte, sql, type SQL } from 'drizzle-orm'
import type { AuditEntry, AuditFilter, AuditTrail } from '../../audit-trail.ts'
import type { Vault } from '../../store.ts'
import type { QueryRunner } from '../connection/query-runner.ts'
import { sealText, unsealTextIfPossible } from '../sealed-text.ts'
import { auditEntries as entries } from '../tables.ts'
import { escapeForPostgres, toIndexableText, unescapeFromPostgres } from '../text.ts'

/** Max number of entries that one statement removes. */
const maxRemoved = 1_000

/** Returns the `place` of an entry for the vault: its encrypted members cannot be decrypted in another entry. */
export const auditVaultPlace = (id: string): string => `audit/${id}`

/** The members of an entry that are encrypted together, as one text. */
type SealedMembers = Pick<AuditEntry, 'before' | 'after' | 'keyId' | 'keyName'>

/** Stores the audit log in a table that all replicas share. */
export class PostgresAuditTrail implements AuditTrail {
  readonly #queries: QueryRunner
  readonly #vault: Vault

  constructor (queries: QueryRunner, vault: Vault) {
    this.#queries = queries
    this.#vault = vault
  }

  async append (given: readonly AuditEntry[]): Promise<void> {
    if (given.length === 0) return
    const rows = given.map((entry) => this.#toRow(entry))
    await this.#queries.runBackground(async (tx) => { await tx.insert(entries).values(rows).onConflictDoNothing() })
  }

  async list (filter: AuditFilter, limit: number, after?: string): Promise<AuditEntry[] | undefined> {
    const number = after === undefined ? undefined : await this.#numberOf(after)
    if (after !== undefined && number === undefined) return undefined
    const rows = await this.#queries.runSlow(
      async (db) =>
        await db
          .select()
          .from(entries)
          .where(and(filterCondition(filter), number === undefined ? undefined : lt(entries.number, number)))
          .orderBy(desc(entries.number))
          .limit(limit)
    )
    return rows.map((row) => this.#toEntry(row))
  }

  async trim (kept: number): Promise<number> {
    return await this.#queries.runBackground(async (tx) => {
      const last =
        tx.select({ number: entries.number }).from(entries).orderBy(desc(entries.number)).limit(1).offset(kept)
      const old = tx
        .select({ number: entries.number })
        .from(entries)
        .where(lte(entries.number, sql`(${last})`))
        .orderBy(entries.number)
        .limit(maxRemoved)
      return (await tx.delete(entries).where(inArray(entries.number, old)).returning({ number: entries.number })).length
    })
  }

  #toRow ({ username, name, before, after, keyId, keyName, ...entry }: AuditEntry): typeof entries.$inferInsert {
    const { data, sealed } =
      sealText(this.#vault, JSON.stringify({ before, after, keyId, keyName }), auditVaultPlace(entry.id))
    return { ...entry, username: toIndexableText(username), name: escapeForPostgres(name), data, sealed }
  }

  #toEntry ({ number: _number, username, name, data, sealed, ...entry }: typeof entries.$inferSelect): AuditEntry {
    const text = unsealTextIfPossible(this.#vault, { data, sealed }, auditVaultPlace(entry.id))
    const members = text === undefined ? { locked: true } as const : JSON.parse(text) as SealedMembers
    return { ...entry, username: unescapeFromPostgres(username), name: unescapeFromPostgres(name), ...members }
  }

  async #numberOf (id: string): Promise<number | undefined> {
    if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id)) return undefined
    const [row] = await this.#queries.runQuick(
      async (db) => await db.select({ number: entries.number }).from(entries).where(eq(entries.id, id))
    )
    return row?.number
  }
}

function filterCondition ({ username, action, entity, name, from, to }: AuditFilter): SQL | undefined {
  return and(
    username === undefined ? undefined : eq(entries.username, toIndexableText(username)),
    action === undefined ? undefined : eq(entries.action, action),
    entity === undefined ? undefined : eq(entries.entity, entity),
    name === undefined ? undefined : eq(entries.name, escapeForPostgres(name)),
    from === undefined ? undefined : gte(entries.timestamp, from),
    to === undefined ? undefined : lt(entries.timestamp, to)
  )
}
