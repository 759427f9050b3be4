import type { Static } from '@sinclair/typebox'
import type { UsageCount, UsageCounts } from '../../../db/ports/usage.ts'
import type { UsageQuery as UsageQuerySchema, UsageRecord as UsageRowSchema } from '../../../schemas/usage.ts'
import { errors } from '../../base/errors/index.ts'
import { parseDateRange } from '../../base/body/index.ts'
import type { Principal } from '../../settings/index.ts'
import { extensionsLimits } from '../limits.ts'

type UsageQuery = Static<typeof UsageQuerySchema>
type UsageAxis = UsageQuery['by']
export type UsageRow = Static<typeof UsageRowSchema>

const dayInMs = 86_400_000
/** Number of days that are returned if a query has no `from`. */
const shownDays = 30
const { waiting: maxWaiting, days: maxDays } = extensionsLimits.usage

const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10)
type MutableUsageCount = { -readonly [Name in keyof UsageCount]: UsageCount[Name] }

/**
 * Returns the name under which the usage of a user is counted on a day: the username. On the day on which the account
 * was created, the time of creation is appended, since a former account with the same name may have been used then.
 * @param createdAt when the account was created, in ISO 8601; '' if unknown
 */
const countedUser = (username: string, day: string, createdAt = ''): string =>
  createdAt.startsWith(day) ? `${username} ${createdAt}` : username
/** Matches the time that `countedUser` appends. */
const firstDayMark = / \d{4}-\d\d-\d\dT[\d:.]+Z$/

/** Whether a count belongs to the current account with a username, and not to a former one. */
const isOwn = ({ user, day }: UsageCount, username: string, createdAt: string): boolean =>
  day >= createdAt.slice(0, 10) && user === countedUser(username, day, createdAt)

/** Counts the usage of callers, and writes it in batches. */
export class UsageRecorder {
  readonly #store: UsageCounts
  readonly #now: () => number
  /** The counts that are not written yet. */
  #waiting = new Map<string, MutableUsageCount>()
  /** The day of the last count, cached since formatting a day for each call is slow. */
  #today = { number: -1, day: '' }
  #writing: Promise<void> = Promise.resolve()

  constructor (store: UsageCounts, now: () => number) {
    this.#store = store
    this.#now = now
  }

  /**
   * Counts a call and its tokens.
   * @param calls the number of calls: 1, or 0 if the call was counted before
   * @param createdAt when the user's account was created, in ISO 8601; undefined if unknown
   */
  count (counted: Omit<UsageCount, 'day' | 'calls'>, calls: number, createdAt?: string): void {
    const number = Math.floor(this.#now() / dayInMs)
    if (this.#today.number !== number) this.#today = { number, day: dayOf(number * dayInMs) }
    const { day } = this.#today
    this.#add({ ...counted, user: countedUser(counted.user, day, createdAt) }, day, calls, maxWaiting)
  }

  /** Adds to the waiting counts. If there are `max` counts, only existing ones are increased. */
  #add (counted: Omit<UsageCount, 'day' | 'calls'>, day: string, calls: number, max: number): void {
    const id = `${day}\n${counted.user}\n${counted.key}\n${counted.server}\n${counted.tool}`
    const former = this.#waiting.get(id)
    if (former !== undefined) {
      former.calls += calls
      former.errors += counted.errors
      former.resultTokens += counted.resultTokens
    } else if (this.#waiting.size < max) this.#waiting.set(id, { ...counted, day, calls })
  }

  /** Writes the waiting counts. @throws StorageError; the counts that were not written wait for the next `flush` */
  async flush (): Promise<void> {
    this.#writing = this.#writing.catch(() => {}).then(async () => { await this.#write() })
    await this.#writing
  }

  /**
   * Returns the usage per day, grouped by one axis. Admins see the usage of all users, other users their own.
   * @param createdAt when the principal's account was created, in ISO 8601; '' if unknown
   * @throws InvalidInput
   */
  async read (principal: Principal, { by, from, to }: UsageQuery, createdAt = ''): Promise<UsageRow[]> {
    const range = parseDateRange({ startDate: from, endDate: to }, ['from', 'to'])
    const end = range.to === undefined ? this.#now() : range.to - 1
    const begin = range.from ?? end - (shownDays - 1) * dayInMs
    const count = Math.floor(end / dayInMs) - Math.floor(begin / dayInMs) + 1
    if (count > maxDays) throw new errors.InvalidInput(`"from" and "to" are more than ${maxDays} days apart`)
    if (count <= 0) {
      if (from !== undefined && to !== undefined) throw new errors.InvalidInput('"from" is after "to"')
      return []
    }
    const days = Array.from({ length: count }, (_, index) => dayOf(begin + index * dayInMs))
    await this.flush()
    const rows = new Map<string, UsageRow>()
    for (const each of await this.#store.list(days)) {
      const { isAdmin, username } = principal
      if (!isAdmin && (username === undefined || !isOwn(each, username, createdAt))) continue
      addRow(rows, { ...each, user: each.user.replace(firstDayMark, '') }, by)
    }
    return [...rows.values()].sort((one, other) => one.day < other.day ? -1 : one.day > other.day ? 1 : 0)
  }

  async #write (): Promise<void> {
    const counts = this.#waiting
    if (counts.size === 0) return
    this.#waiting = new Map()
    try {
      for (const [id, count] of counts) {
        await this.#store.add([count])
        counts.delete(id)
      }
      await this.#store.save()
    } catch (error) {
      for (const count of counts.values()) this.#add(count, count.day, count.calls, Infinity)
      throw error
    }
  }
}

function addRow (rows: Map<string, UsageRow>, count: UsageCount, by: UsageAxis): void {
  const { day, server } = count
  const id = JSON.stringify([day, count[by], by === 'tool' ? server : ''])
  const row = rows.get(id) ??
    { day, [by]: count[by], ...by === 'tool' && { server }, calls: 0, errors: 0, resultTokens: 0 }
  row.calls += count.calls
  row.errors += count.errors
  row.resultTokens += count.resultTokens
  rows.set(id, row)
}
