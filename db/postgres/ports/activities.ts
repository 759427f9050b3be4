import { setImmediate as turn } from 'node:timers/promises'
import { and, count, desc, eq, getTableColumns, isNotNull, max, sql } from 'drizzle-orm'
import type {
  Activities, Activity, ActivityFilter, ActivityFilterValues, ActivityPage, TimeIntervals
} from '../../ports/activities.ts'
import type { Vault } from '../../store.ts'
import { selectRows, type Db } from '../connection/driver.ts'
import type { QueryRunner } from '../connection/query-runner.ts'
import { unsealTextIfPossible, sealText } from '../sealed-text.ts'
import { activities } from '../tables.ts'
import { toFilterText, toStorableText } from './activity-texts.ts'
import { appendCalls, removeOldCalls, type CallRow } from './activity-hours.ts'
import {
  activityCondition, type FilterColumn, filterValuesStatement, activitySumsStatement, intervalCountsStatement
} from './activity-sums.ts'

/** Limits of one INSERT: the number of rows, and the total length of their encrypted texts in characters. */
const insertLimits = { rows: 500, size: 4 * 1024 * 1024 }
/** Total length of encrypted texts after which the encryption of a batch yields to the event loop, in characters. */
const sealChunkSize = 256 * 1024
/** Max number of calls that are counted exactly, or of which a quantile is computed. */
const maxCounted = 10_000
/** Max total size of the encrypted members on one page, in bytes. */
const maxPayloads = 8 * 1024 * 1024

/**
 * Returns the `place` of a call for the vault: its encrypted members cannot be decrypted in the row of another call.
 */
export const activityVaultPlace = (id: string): string => `activities/${id}`
/** The members of a call that are encrypted together, as one text. */
type SealedMembers = Pick<Activity, 'input' | 'output' | 'errorMessage' | 'policy' | 'guards' | 'refused'>

/** Stores the records of calls in tables that all replicas share. */
export class PostgresActivities implements Activities {
  readonly #queries: QueryRunner
  readonly #vault: Vault

  constructor (queries: QueryRunner, vault: Vault) {
    this.#queries = queries
    this.#vault = vault
  }

  async append (batch: readonly Activity[]): Promise<void> {
    for await (const rows of chunks(batch, (activity) => this.#toRow(activity))) {
      await this.#queries.runBackground(async (tx) => { await appendCalls(tx, rows) })
    }
  }

  async list (filter: ActivityFilter, page: number, limit: number): Promise<ActivityPage> {
    // These are separate queries, so that each has its own timeout.
    const rows = await this.#queries.runSlow(async (db) => await activityPageStatement(db, filter, page, limit))
    const [counted] = await this.#queries.runSlow(async (db) => await activityCountStatement(db, filter))
    const total = counted?.total ?? 0
    const approximate = total > maxCounted
    return {
      activities: rows.map((row) => this.#toActivity(row)),
      total: approximate ? Math.max(total, await this.#estimate(filter)) : total,
      approximate
    }
  }

  async find (id: string): Promise<Activity | undefined> {
    if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id)) return undefined
    const [row] =
      await this.#queries.runQuick(async (db) => await db.select().from(activities).where(eq(activities.id, id)))
    return row && this.#toActivity(row)
  }

  async listFilterValues (filter: ActivityFilter): Promise<ActivityFilterValues> {
    const distinct = async (name: FilterColumn): Promise<string[]> => await this.#queries.runSlow(async (db) =>
      (await selectRows<{ value: string }>(db, filterValuesStatement(filter, name))).map(({ value }) => value))
    return {
      servers: await distinct('server'),
      tools: await distinct('tool'),
      groups: await distinct('group'),
      usernames: await distinct('username'),
      keyNames: await distinct('keyName')
    }
  }

  async lastUses (server: string): Promise<ReadonlyMap<string, number>> {
    const { username, timestamp } = activities
    const rows = await this.#queries.runSlow(async (db) => await db.select({ username, last: max(timestamp) })
      .from(activities)
      .where(and(activityCondition({ server }), isNotNull(username)))
      .groupBy(username))
    return new Map(rows.flatMap(({ username, last }) => username && last ? [[username, last]] : []))
  }

  async stats (filter: ActivityFilter): Promise<{ total: number, errors: number, duration: number }> {
    const [found] = await this.#queries.runSlow(async (db) => await activitySumsStatement(db, filter))
    const total = Number(found?.total ?? 0)
    return {
      total, errors: Number(found?.errors ?? 0), duration: total === 0 ? 0 : Number(found?.duration ?? 0) / total
    }
  }

  async series (
    filter: Omit<ActivityFilter, 'to'>, spans: TimeIntervals
  ): Promise<Array<{ total: number, errors: number }>> {
    const rows = await this.#queries.runSlow(async (db) =>
      await selectRows<{ at: string, total: string, errors: string | null }>(
        db, intervalCountsStatement(filter, spans)
      ))
    const found = new Map(rows.map(({ at, total, errors }) =>
      [Number(at), { total: Number(total), errors: Number(errors ?? 0) }]))
    return Array.from({ length: spans.count }, (_, at) => found.get(at) ?? { total: 0, errors: 0 })
  }

  async durationQuantile (filter: ActivityFilter, share: number): Promise<number | undefined> {
    const [found] = await this.#queries.runSlow(async (db) => {
      const newest = db
        .select({ duration: activities.duration })
        .from(activities)
        .where(activityCondition(filter))
        .orderBy(desc(activities.timestamp))
        .limit(maxCounted)
        .as('newest')
      const within = sql`within group (order by ${newest.duration})`
      const at = sql<number | null>`percentile_cont(${sql.raw(String(share))}) ${within}`
      return await db.select({ at }).from(newest)
    })
    return found?.at === null || found?.at === undefined ? undefined : Number(found.at)
  }

  async removeBefore (before: number): Promise<number> {
    for (let removed = 0; ;) {
      const gone = await this.#queries.runBackground(async (tx) => await removeOldCalls(tx, before, 'wait'))
      if (gone === 0) return removed
      removed += gone
    }
  }

  async removeSomeBefore (before: number): Promise<number> {
    return await this.#queries.runBackground(async (tx) => await removeOldCalls(tx, before, 'skip'))
  }

  #toRow (activity: Activity): CallRow {
    const { id, input, output, errorMessage, policy, guards, refused } = activity
    const members: SealedMembers = { input, output, errorMessage, policy, guards, refused }
    const sealed = Object.values(members).every((member) => member === undefined)
      ? undefined
      : sealText(this.#vault, JSON.stringify(members), activityVaultPlace(id))
    return { ...toPlainColumns(activity), ...sealed, sealedBy: sealed?.sealed?.split('.')[1] }
  }

  #toActivity ({ data, sealed, sealedBy: _, ...row }: typeof activities.$inferSelect): Activity {
    const members = Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null)) as unknown as Activity
    if (data === null) return members
    const text = unsealTextIfPossible(this.#vault, { data, sealed }, activityVaultPlace(row.id))
    return text === undefined ? { ...members, locked: true } : { ...members, ...JSON.parse(text) as SealedMembers }
  }

  /** Returns PostgreSQL's estimate of the number of matching calls, since counting many calls would take too long. */
  async #estimate (filter: ActivityFilter): Promise<number> {
    const [found] = await this.#queries.runSlow(async (db) => {
      const select = db.select({ one: sql`1` }).from(activities).where(activityCondition(filter))
      return await selectRows<Record<string, unknown>>(db, sql`explain (format json) ${select}`)
    })
    const text = found?.['QUERY PLAN']
    const plan =
      (typeof text === 'string' ? JSON.parse(text) : text) as Array<{ Plan?: { 'Plan Rows'?: number } }> | undefined
    return plan?.[0]?.Plan?.['Plan Rows'] ?? 0
  }
}

/**
 * Returns the query for one page of calls. Their ids are found in an index, so that only the rows of the page are read.
 * Exported for the test of its query plan.
 * @param page the number of the page, beginning with 1
 * @param limit the number of calls per page
 */
export function activityPageStatement (db: Db, filter: ActivityFilter, page: number, limit: number) {
  const order = [desc(activities.timestamp), desc(activities.id)]
  const ids = db
    .select({ id: activities.id })
    .from(activities)
    .where(activityCondition(filter))
    .orderBy(...order)
    .limit(limit)
    .offset((page - 1) * limit)
    .as('page')
  const { data, sealed } = activities
  // The encrypted texts are base64, so the members take three quarters of their length.
  const size = sql`sum(coalesce(octet_length(${sealed}), 0) * 3 / 4)`
  const fits = sql`${size} over (order by ${order[0]}, ${order[1]}) <= ${maxPayloads}`
  return db
    .select({
      ...getTableColumns(activities),
      data: sql<{ secret: string } | null>`case when ${fits} then ${data} end`.mapWith(data),
      sealed: sql<string | null>`case when ${fits} then ${sealed} end`
    })
    .from(activities)
    .innerJoin(ids, eq(ids.id, activities.id))
    .orderBy(...order)
}

/** Returns the query that counts matching calls, up to `maxCounted + 1`. Exported for the test of its query plan. */
export function activityCountStatement (db: Db, filter: ActivityFilter) {
  const limited = db
    .select({ one: sql`1`.as('one') })
    .from(activities)
    .where(activityCondition(filter))
    .limit(maxCounted + 1)
    .as('limited')
  return db.select({ total: count() }).from(limited)
}

/**
 * Converts a batch to rows, in chunks that fit into one INSERT. Yields to the event loop after each `sealChunkSize`.
 */
async function * chunks (
  batch: readonly Activity[], rowOf: (activity: Activity) => CallRow
): AsyncGenerator<CallRow[]> {
  let rows: CallRow[] = []
  let [size, sealed] = [0, 0]
  for (const activity of batch) {
    const row = rowOf(activity)
    rows.push(row)
    size += row.sealed?.length ?? 0
    if (size - sealed > sealChunkSize) {
      sealed = size
      await turn()
    }
    if (rows.length < insertLimits.rows && size < insertLimits.size) continue
    yield rows
    rows = [];
    [size, sealed] = [0, 0]
  }
  if (rows.length > 0) yield rows
}

/** Returns the unencrypted columns of a call. */
const toPlainColumns = (activity: Activity): CallRow => ({
  id: activity.id,
  timestamp: activity.timestamp,
  server: toFilterText(activity.server),
  tool: toFilterText(activity.tool),
  duration: activity.duration,
  status: activity.status,
  group: convertIfGiven(activity.group, toFilterText),
  username: convertIfGiven(activity.username, toFilterText),
  keyId: convertIfGiven(activity.keyId, toFilterText),
  keyName: convertIfGiven(activity.keyName, toFilterText),
  sourceIp: convertIfGiven(activity.sourceIp, toStorableText),
  clientId: convertIfGiven(activity.clientId, toStorableText)
})

const convertIfGiven = (text: string | undefined, convert: (text: string) => string): string | undefined =>
  text === undefined ? undefined : convert(text)
