import type { Activities, Activity, ActivityFilter } from '../../../db/ports/activities.ts'
import type { Principal } from '../../settings/index.ts'
import { type DateRange, parseDateRange } from '../../base/body/index.ts'
import { awaitRecords, errors, noSuchError } from '../../base/errors/index.ts'

/** A filter: exact values, and a range of time. */
type ActivityQuery = Omit<ActivityFilter, 'from' | 'to'> & DateRange

/** An activity in a response; `timestamp` in ISO 8601. */
type ShownActivity = Omit<Activity, 'timestamp'> & { timestamp: string }

/** `approximate`: `total` is an estimate. */
interface Pagination { page: number, limit: number, total: number, totalPages: number, approximate?: true }

const day = 24 * 60 * 60_000
/** Max index of the first row of a page, since the database skips all rows before it. */
const maxOffset = 100_000

/**
 * The recorded calls that a principal may see: users see their own, admins all. All methods throw RecordsAway if the
 * database is unavailable.
 */
export class ActivityLog {
  readonly #store: Activities | string
  readonly #since: (username: string) => number | undefined

  /**
   * @param store the records, or the reason why calls are not recorded
   * @param since returns the creation time of an account, in ms since 1970, or undefined if it is unknown; earlier
   *   calls belong to a former account with the same name
   */
  constructor (store: Activities | string, since: (username: string) => number | undefined) {
    this.#store = store
    this.#since = since
  }

  get available (): boolean { return typeof this.#store !== 'string' }

  /** Why calls are not recorded; undefined: they are. */
  get reason (): string | undefined { return typeof this.#store === 'string' ? this.#store : undefined }

  /** @throws NotRecorded */
  get #activities (): Activities {
    if (typeof this.#store === 'string') throw new errors.NotRecorded(this.#store)
    return this.#store
  }

  /** @throws NotRecorded */
  mustBeAvailable (): void { void this.#activities }

  /** One page, newest first. @param page from 1 @throws InvalidInput */
  async list (
    principal: Principal,
    query: ActivityQuery,
    page: number,
    limit: number
  ): Promise<{ data: ShownActivity[], pagination: Pagination }> {
    if ((page - 1) * limit > maxOffset) {
      throw new errors.InvalidInput(`"page" goes beyond ${maxOffset} activities: ask for an earlier time with ` +
        '"endDate" instead')
    }
    const filter = this.#filterOf(principal, query)
    const { activities, total, approximate } = filter === undefined
      ? { activities: [], total: 0, approximate: false }
      : await awaitRecords(this.#activities.list(filter, page, limit))
    const totalPages = Math.ceil(total / limit)
    return {
      data: activities
        .map(toShown),
      pagination: { page, limit, total, totalPages, ...(approximate ? { approximate } : {}) }
    }
  }

  /** @throws NoSuch, also for an activity of another user */
  async find (principal: Principal, id: string): Promise<ShownActivity> {
    const found = await awaitRecords(this.#activities.find(id))
    if (found === undefined || !(principal.isAdmin || this.#isOf(principal, found))) throw noSuchError('activity', id)
    return toShown(found)
  }

  /** The number of calls, and the mean duration in ms. @throws InvalidInput */
  async stats (
    principal: Principal,
    query: ActivityQuery
  ): Promise<{ totalCalls: number, successCount: number, errorCount: number, avgDuration: number }> {
    const filter = this.#filterOf(principal, query)
    const { total, errors: failed, duration } = filter === undefined
      ? { total: 0, errors: 0, duration: 0 }
      : await awaitRecords(this.#activities.stats(filter))
    return { totalCalls: total, successCount: total - failed, errorCount: failed, avgDuration: duration }
  }

  /** The duration in ms that 95 % of the newest calls do not exceed; undefined: there are none. @throws InvalidInput */
  async p95 (principal: Principal, query: ActivityQuery): Promise<number | undefined> {
    const filter = this.#filterOf(principal, query)
    return filter && await awaitRecords(this.#activities.durationOf(filter, 0.95))
  }

  /** The distinct values that a filter can use. */
  async filters (
    principal: Principal
  ): Promise<{ servers: string[], tools: string[], groups: string[], usernames: string[], keyNames: string[] }> {
    const { servers, tools, groups, usernames, keyNames } =
      await awaitRecords(this.#activities.values(this.#filterOf(principal, {}) ?? {}))
    return {
      servers: [...servers], tools: [...tools], groups: [...groups], usernames: [...usernames], keyNames: [...keyNames]
    }
  }

  /** Removes the activities older than some days. @returns their number */
  async cleanup (days: number): Promise<number> {
    return await awaitRecords(this.#activities.cleanup(Date.now() - days * day))
  }

  /** Limits a query to the activities that a principal may see; undefined: none. @throws InvalidInput */
  #filterOf (
    { isAdmin, username }: Principal, { startDate, endDate, ...equal }: ActivityQuery
  ): ActivityFilter | undefined {
    const filter = { ...equal, ...parseDateRange({ startDate, endDate }) }
    if (isAdmin) return filter
    // A principal without a username has no calls of its own.
    if (username === undefined || (equal.username !== undefined && equal.username !== username)) return undefined
    const since = this.#since(username)
    return { ...filter, username, ...(since === undefined ? {} : { from: Math.max(since, filter.from ?? 0) }) }
  }

  #isOf ({ username }: Principal, activity: Activity): boolean {
    return username !== undefined && activity.username === username &&
      activity.timestamp >= (this.#since(username) ?? 0)
  }
}

const toShown = (
  { timestamp, ...activity }: Activity
): ShownActivity => ({ ...activity, timestamp: new Date(timestamp).toISOString() })
