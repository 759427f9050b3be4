import { and, avg, count, desc, eq, gte, inArray, isNotNull, lt, sql, type SQL } from 'drizzle-orm'
import type { PgColumn } from 'drizzle-orm/pg-core'
import type { Activities, Activity, ActivityFilter, ActivityValues } from '../../ports.ts'
import type { QueryRunner } from '../connection/query-runner.ts'
import { activities } from '../tables.ts'

/** Bounds of one statement: rows that it adds, their size in characters, rows that it removes. */
const bounds = { rows: 500, size: 4 * 1024 * 1024, removed: 5_000 }
/** Max values of one kind to filter by. */
const maxValues = 1_000

/** Replaces what PostgreSQL cannot store in a text: NUL and unpaired surrogates. */
const storable = (text: string): string => Buffer.from(text).toString().replaceAll('\0', '\ufffd')
const withStorableTexts = <Entry extends object>(entry: Entry): Entry =>
  Object.fromEntries(Object.entries(entry).map(([name, value]) => [name, typeof value === 'string' ? storable(value) : value])) as Entry

/** The record of calls; all replicas share one table. */
export class PostgresActivities implements Activities {
  readonly #queries: QueryRunner

  constructor (queries: QueryRunner) {
    this.#queries = queries
  }

  async append (batch: readonly Activity[]): Promise<void> {
    for (const rows of chunks(batch)) {
      await this.#queries.slow(async (db) => {
        await db.insert(activities).values(rows).onConflictDoNothing()
      })
    }
  }

  async list (filter: ActivityFilter, page: number, limit: number): Promise<{ activities: Activity[], total: number }> {
    // Two queries one after the other, since the timeout of a query is that of one statement.
    const rows = await this.#queries.slow(
      async (db) =>
        await db
          .select()
          .from(activities)
          .where(matching(filter))
          .orderBy(desc(activities.timestamp), desc(activities.id))
          .limit(limit)
          .offset((page - 1) * limit)
    )
    const total = await this.#queries.slow(async (db) => await db.$count(activities, matching(filter)))
    return { activities: rows.map(toActivity), total }
  }

  async find (id: string): Promise<Activity | undefined> {
    if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id)) return undefined
    const [row] = await this.#queries.quick(async (db) => await db.select().from(activities).where(eq(activities.id, id)))
    return row && toActivity(row)
  }

  async values (filter: ActivityFilter): Promise<ActivityValues> {
    const { server, tool, group, username, keyId, keyName } = activities
    const distinct = async (column: PgColumn): Promise<string[]> => await this.#queries.slow(async (db) => {
      const rows = await db
        .selectDistinct({ value: sql<string>`${column}` })
        .from(activities)
        .where(and(matching(filter), isNotNull(column)))
        .orderBy(column)
        .limit(maxValues)
      return rows.map(({ value }) => value)
    })
    const keys = await this.#queries.slow(
      async (db) =>
        await db
          .select({ id: sql<string>`${keyId}`, name: sql<string | null>`max(${keyName})` })
          .from(activities)
          .where(and(matching(filter), isNotNull(keyId)))
          .groupBy(keyId)
          .orderBy(keyId)
          .limit(maxValues)
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
    const [found] = await this.#queries.slow(
      async (db) =>
        await db
          .select({
            total: count(),
            errors: sql<string>`count(*) filter (where ${activities.status} = 'error')`,
            duration: avg(activities.duration)
          })
          .from(activities)
          .where(matching(filter))
    )
    return { total: found?.total ?? 0, errors: Number(found?.errors ?? 0), duration: Number(found?.duration ?? 0) }
  }

  async cleanup (before: number): Promise<number> {
    // In chunks: removing the records of years may take longer than the statement timeout.
    for (let removed = 0; ;) {
      const gone = await this.#queries.slow(
        async (db) =>
          await db
            .delete(activities)
            .where(
              inArray(
                activities.id,
                db.select({ id: activities.id }).from(activities).where(lt(activities.timestamp, before)).limit(bounds.removed)
              )
            )
            .returning({ id: activities.id })
      )
      removed += gone.length
      if (gone.length < bounds.removed) return removed
    }
  }
}

/** Splits a batch into chunks that fit into one statement. */
function * chunks (batch: readonly Activity[]): Generator<Activity[]> {
  let rows: Activity[] = []
  let size = 0
  for (const activity of batch) {
    rows.push(withStorableTexts(activity))
    size += (activity.input?.length ?? 0) + (activity.output?.length ?? 0)
    if (rows.length < bounds.rows && size < bounds.size) continue
    yield rows
    rows = []
    size = 0
  }
  if (rows.length > 0) yield rows
}

/** The filter as a condition; undefined: it has no criteria. */
function matching ({ from, to, ...equal }: ActivityFilter): SQL | undefined {
  const equalities = (Object.entries(equal) as Array<[keyof typeof equal, string | undefined]>).map(([name, value]) =>
    value === undefined ? undefined : eq(activities[name], storable(value))
  )
  return and(
    ...equalities,
    from === undefined ? undefined : gte(activities.timestamp, from),
    to === undefined ? undefined : lt(activities.timestamp, to)
  )
}

const toActivity = (row: typeof activities.$inferSelect): Activity =>
  Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null)) as unknown as Activity
