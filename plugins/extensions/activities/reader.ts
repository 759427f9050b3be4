import type { Static } from '@sinclair/typebox'
import type {
  Activities, Activity, ActivityFilter, ActivityFilterValues, TimeIntervals
} from '../../../db/ports/activities.ts'
import type { ActivityList, ActivityStats } from '../../../schemas/activities.ts'
import type { Principal } from '../../settings/index.ts'
import { type DateRange, parseDateRange } from '../../base/body/index.ts'
import { Semaphore } from '../../base/limits/index.ts'
import { awaitActivityOrAuditQuery, errors, noSuchError } from '../../base/errors/index.ts'

/** A query for activities: exact values of some fields, and a date range. */
type ActivityQuery = Omit<ActivityFilter, 'from' | 'to'> & DateRange

/** An activity in a response. `timestamp` is in ISO 8601. */
type ShownActivity = Omit<Activity, 'timestamp'> & { timestamp: string }

const dayInMs = 24 * 60 * 60_000
/** Max number of activities before a page, since the database must read and skip them. */
const maxOffset = 100_000

/**
 * Reads recorded calls. Admins see all calls, other users their own. Methods that query the database throw RecordsAway
 * if it is unavailable. All of them except `lastUseByUser` throw NotRecorded if calls are not recorded.
 */
export class ActivityReader {
  readonly #store: Activities | string
  /** Few pages are read at a time, and one for each caller, since a page may have many megabytes. */
  readonly #turns = new Semaphore({ places: 4, perOwner: 1 })
  readonly #accountCreatedAt: (username: string) => number | undefined

  /**
   * @param store the records, or the reason why calls are not recorded
   * @param accountCreatedAt returns the creation time of a user's account, in ms since 1970, or undefined if it is
   *   unknown; calls before it belong to a former account with the same name
   */
  constructor (store: Activities | string, accountCreatedAt: (username: string) => number | undefined) {
    this.#store = store
    this.#accountCreatedAt = accountCreatedAt
  }

  get isAvailable (): boolean { return typeof this.#store !== 'string' }

  /** The reason why calls are not recorded, or undefined if they are recorded. */
  get disabledReason (): string | undefined { return typeof this.#store === 'string' ? this.#store : undefined }

  /** The store. @throws NotRecorded if calls are not recorded */
  get #activities (): Activities {
    if (typeof this.#store === 'string') throw new errors.NotRecorded(this.#store)
    return this.#store
  }

  /** Checks that calls are recorded. @throws NotRecorded with the reason */
  assertAvailable (): void { void this.#activities }

  /**
   * Returns one page of the activities that a principal may see, newest first.
   * @param page the number of the page, from 1
   * @param limit the number of activities of a page
   * @throws InvalidInput
   */
  async list (
    principal: Principal,
    query: ActivityQuery,
    page: number,
    limit: number
  ): Promise<{ data: ShownActivity[], pagination: Static<typeof ActivityList>['pagination'] }> {
    if ((page - 1) * limit > maxOffset) {
      throw new errors.InvalidInput(
        `"page" goes beyond ${maxOffset} activities: request an earlier time with "endDate" instead`
      )
    }
    const filter = this.#filterOf(principal, query)
    const { activities, total, approximate } = filter === undefined
      ? { activities: [], total: 0, approximate: false }
      : await this.#inTurn(principal, async () => await this.#activities.list(filter, page, limit))
    const totalPages = Math.ceil(total / limit)
    return {
      data: activities.map(toShown),
      pagination: { page, limit, total, totalPages, ...(approximate ? { approximate } : {}) }
    }
  }

  async #inTurn<Result> (principal: Principal, query: () => Promise<Result>): Promise<Result> {
    const release = await this.#turns.take(principal.key, false)
    return await awaitActivityOrAuditQuery(query()).finally(release)
  }

  /** Returns an activity by its id. @throws NoSuch, also for an activity that the principal may not see */
  async find (principal: Principal, id: string): Promise<ShownActivity> {
    const found = await awaitActivityOrAuditQuery(this.#activities.find(id))
    if (found === undefined || !(principal.isAdmin || this.#belongsTo(principal, found))) {
      throw noSuchError('activity', id)
    }
    return toShown(found)
  }

  /** Returns the time of each user's last call to a server, in ms since 1970; empty if calls are not recorded. */
  async lastUseByUser (server: string): Promise<ReadonlyMap<string, number>> {
    return this.isAvailable ? await awaitActivityOrAuditQuery(this.#activities.lastUses(server)) : new Map()
  }

  /** Counts the calls that a principal may see, and computes their mean duration, in ms. @throws InvalidInput */
  async stats (principal: Principal, query: ActivityQuery): Promise<Static<typeof ActivityStats>> {
    const filter = this.#filterOf(principal, query)
    const { total, errors: failed, duration } = filter === undefined
      ? { total: 0, errors: 0, duration: 0 }
      : await awaitActivityOrAuditQuery(this.#activities.stats(filter))
    return { totalCalls: total, successCount: total - failed, errorCount: failed, avgDuration: duration }
  }

  /**
   * Returns the numbers of successful and failed calls in consecutive time spans. `at`: the start of a span, in ms
   * since 1970.
   * @throws InvalidInput
   */
  async series (
    principal: Principal, query: Omit<ActivityQuery, 'endDate'>, spans: TimeIntervals
  ): Promise<ReadonlyArray<{ readonly at: number, readonly ok: number, readonly failed: number }>> {
    const filter = this.#filterOf(principal, query)
    const found = filter ? await awaitActivityOrAuditQuery(this.#activities.series(filter, spans)) : []
    return Array.from({ length: spans.count }, (_, index) => {
      const { total, errors: failed } = found[index] ?? { total: 0, errors: 0 }
      return { at: spans.from + index * spans.length, ok: total - failed, failed }
    })
  }

  /**
   * Returns the 95th percentile of the durations of the newest calls, in ms; undefined if there are no calls.
   * @throws InvalidInput
   */
  async p95 (principal: Principal, query: ActivityQuery): Promise<number | undefined> {
    const filter = this.#filterOf(principal, query)
    return filter && await awaitActivityOrAuditQuery(this.#activities.durationQuantile(filter, 0.95))
  }

  /** Returns the distinct servers, tools, groups, users and keys of the activities that a principal may see. */
  async filterValues (principal: Principal): Promise<ActivityFilterValues> {
    const activities = this.#activities
    const filter = this.#filterOf(principal, {})
    return filter ? await awaitActivityOrAuditQuery(activities.listFilterValues(filter)) : noFilterValues
  }

  /** Removes activities that are older than a number of days. @returns the number of removed activities */
  async removeOlderThan (days: number): Promise<number> {
    return await awaitActivityOrAuditQuery(this.#activities.removeBefore(Date.now() - days * dayInMs))
  }

  /**
   * Limits a query to the activities that a principal may see.
   * @returns undefined if the principal may see none of them
   * @throws InvalidInput
   */
  #filterOf (
    { isAdmin, username }: Principal, { startDate, endDate, ...equal }: ActivityQuery
  ): ActivityFilter | undefined {
    const filter = { ...equal, ...parseDateRange({ startDate, endDate }) }
    if (isAdmin) return filter
    // A caller without a username sees no calls.
    if (username === undefined || (equal.username !== undefined && equal.username !== username)) return undefined
    const since = this.#accountCreatedAt(username)
    return { ...filter, username, ...(since === undefined ? {} : { from: Math.max(since, filter.from ?? 0) }) }
  }

  #belongsTo ({ username }: Principal, activity: Activity): boolean {
    return username !== undefined && activity.username === username &&
      activity.timestamp >= (this.#accountCreatedAt(username) ?? 0)
  }
}

const noFilterValues: ActivityFilterValues = { servers: [], tools: [], groups: [], usernames: [], keyNames: [] }

const toShown = ({ timestamp, ...activity }: Activity): ShownActivity =>
  ({ ...activity, timestamp: new Date(timestamp).toISOString() })
