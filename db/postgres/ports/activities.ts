import { and, avg, count, desc, eq, gte, inArray, isNotNull, lt, sql, type SQL } from 'drizzle-orm'
import type { PgColumn } from 'drizzle-orm/pg-core'
import type { Activities, Activity, ActivityFilter, ActivityValues } from '../../ports.ts'
import type { QueryRunner } from '../connection/query-runner.ts'
import { activities } from '../tables.ts'

/** For one statement: rows that are added, and how long they are in all, in characters; rows that are removed. */
const piece = { rows: 500, size: 4 * 1024 * 1024, removed: 5_000 }
/** Values of one kind that are told. */
const told = 1_000

/** Text as PostgreSQL can hold it: without NUL and halves of surrogate pairs. */
const legible = (text: string): string => Buffer.from(text).toString().replaceAll('\0', '\ufffd')
const legibly = <Entry extends object>(entry: Entry): Entry =>
  Object.fromEntries(Object.entries(entry).map(([name, value]) => [name, typeof value === 'string' ? legible(value) : value])) as Entry

/** The record of calls, of all replicas in one table. */
export class PostgresActivities implements Activities {
  readonly #asks: QueryRunner

  constructor (asks: QueryRunner) {
    this.#asks = asks
  }

  async append (batch: readonly Activity[]): Promise<void> {
    for (const rows of pieces(batch)) {
      await this.#asks.slow(async (db) => {
        await db.insert(activities).values(rows).onConflictDoNothing()
      })
    }
  }

  async list (filter: ActivityFilter, page: number, limit: number): Promise<{ activities: Activity[], total: number }> {
    // A statement at a time: each has the time that a statement may take.
    const rows = await this.#asks.slow(
      async (db) =>
        await db
          .select()
          .from(activities)
          .where(those(filter))
          .orderBy(desc(activities.timestamp), desc(activities.id))
          .limit(limit)
          .offset((page - 1) * limit)
    )
    return { activities: rows.map(toActivity), total: await this.#asks.slow(async (db) => await db.$count(activities, those(filter))) }
  }

  async find (id: string): Promise<Activity | undefined> {
    if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id)) return undefined
    const [row] = await this.#asks.quick(async (db) => await db.select().from(activities).where(eq(activities.id, id)))
    return row && toActivity(row)
  }

  async values (filter: ActivityFilter): Promise<ActivityValues> {
    const { server, tool, group, username, keyId, keyName } = activities
    const distinct = async (column: PgColumn): Promise<string[]> => await this.#asks.slow(async (db) => {
      const rows = await db
        .selectDistinct({ value: sql<string>`${column}` })
        .from(activities)
        .where(and(those(filter), isNotNull(column)))
        .orderBy(column)
        .limit(told)
      return rows.map(({ value }) => value)
    })
    const keys = await this.#asks.slow(
      async (db) =>
        await db
          .select({ id: sql<string>`${keyId}`, name: sql<string | null>`max(${keyName})` })
          .from(activities)
          .where(and(those(filter), isNotNull(keyId)))
          .groupBy(keyId)
          .orderBy(keyId)
          .limit(told)
    )
    return {
      servers: await distinct(server),
      tools: await distinct(tool),
      groups: await distinct(group),
      usernames: await distinct(username),
      keys: keys.map(({ id, name }) => name === null ? { id } : { id, name })
    }
  }

  async stats (filter: ActivityFilter): Promise<{ total: number, errors: number, duration: number }> {
    const [found] = await this.#asks.slow(
      async (db) =>
        await db
          .select({
            total: count(),
            errors: sql<string>`count(*) filter (where ${activities.status} = 'error')`,
            duration: avg(activities.duration)
          })
          .from(activities)
          .where(those(filter))
    )
    return { total: found?.total ?? 0, errors: Number(found?.errors ?? 0), duration: Number(found?.duration ?? 0) }
  }

  async cleanup (before: number): Promise<number> {
    // In pieces: years of them may take longer than one statement may.
    for (let removed = 0; ;) {
      const gone = await this.#asks.slow(
        async (db) =>
          await db
            .delete(activities)
            .where(
              inArray(
                activities.id,
                db.select({ id: activities.id }).from(activities).where(lt(activities.timestamp, before)).limit(piece.removed)
              )
            )
            .returning({ id: activities.id })
      )
      removed += gone.length
      if (gone.length < piece.removed) return removed
    }
  }
}

/** A batch in pieces that a statement can hold. */
function * pieces (batch: readonly Activity[]): Generator<Activity[]> {
  let rows: Activity[] = []
  let size = 0
  for (const activity of batch) {
    rows.push(legibly(activity))
    size += (activity.input?.length ?? 0) + (activity.output?.length ?? 0)
    if (rows.length < piece.rows && size < piece.size) continue
    yield rows
    rows = []
    size = 0
  }
  if (rows.length > 0) yield rows
}

function those ({ from, to, ...same }: ActivityFilter): SQL | undefined {
  const exact = (Object.entries(same) as Array<[keyof typeof same, string | undefined]>).map(([name, value]) =>
    value === undefined ? undefined : eq(activities[name], legible(value))
  )
  return and(
    ...exact,
    from === undefined ? undefined : gte(activities.timestamp, from),
    to === undefined ? undefined : lt(activities.timestamp, to)
  )
}

const toActivity = (row: typeof activities.$inferSelect): Activity =>
  Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null)) as unknown as Activity
