import type { UsageCount, UsageCounts } from '../../../db/ports/usage.ts'
import { errors } from '../../base/errors/index.ts'
import { parseDateRange } from '../../base/body/index.ts'
import type { Principal } from '../../settings/index.ts'
import { extensionsLimits } from '../limits.ts'

export type UsageAxis = 'user' | 'key' | 'server' | 'tool'
/** The member of the axis is beside these. */
export interface UsageRow { day: string, calls: number, errors: number, resultTokens: number, server?: string }

interface UsageQuery { readonly by: UsageAxis, readonly from?: string, readonly to?: string }

const dayInMs = 86_400_000
/** Days that are shown without `from`. */
const shownDays = 30
const { waiting: maxWaiting, days: maxDays } = extensionsLimits.usage

const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10)

/** Counts what callers use, and writes it in batches. */
export class Usage {
  readonly #store: UsageCounts
  readonly #now: () => number
  #waiting = new Map<string, UsageCount>()
  #writing: Promise<void> = Promise.resolve()

  constructor (store: UsageCounts, now: () => number) {
    this.#store = store
    this.#now = now
  }

  /** Whether something is to be written. */
  get hasWaiting (): boolean { return this.#waiting.size > 0 }

  count (what: Omit<UsageCount, 'day' | 'calls'>): void {
    const day = dayOf(this.#now())
    const { user, key, server, tool, errors: failed, resultTokens } = what
    const id = JSON.stringify([day, user, key, server, tool])
    const former = this.#waiting.get(id)
    if (former === undefined && this.#waiting.size >= maxWaiting) return
    this.#waiting.set(id, {
      ...what,
      day,
      calls: (former?.calls ?? 0) + 1,
      errors: (former?.errors ?? 0) + failed,
      resultTokens: (former?.resultTokens ?? 0) + resultTokens
    })
  }

  /** Writes what has been counted. What cannot be written waits for the next time. */
  async flush (): Promise<void> {
    this.#writing = this.#writing.catch(() => {}).then(async () => { await this.#write() })
    await this.#writing
  }

  /**
   * The usage of some days, by one axis: of everybody for admins, else the principal's own.
   * @param since the day from which an account's usage is its own
   * @throws InvalidInput
   */
  async read (principal: Principal, { by, from, to }: UsageQuery, since = ''): Promise<UsageRow[]> {
    const range = parseDateRange({ startDate: from, endDate: to }, ['from', 'to'])
    const end = range.to === undefined ? this.#now() : range.to - 1
    const begin = range.from ?? end - (shownDays - 1) * dayInMs
    const count = Math.floor(end / dayInMs) - Math.floor(begin / dayInMs) + 1
    if (count > maxDays) throw new errors.InvalidInput(`"from" and "to" are more than ${maxDays} days apart`)
    const days = Array.from({ length: Math.max(0, count) }, (_, index) => dayOf(begin + index * dayInMs))
    await this.flush()
    const rows = new Map<string, UsageRow>()
    for (const each of await this.#store.list(days)) {
      if (!principal.isAdmin && (principal.username === undefined || each.user !== principal.username)) continue
      if (!principal.isAdmin && each.day < since) continue
      addRow(rows, each, by)
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
      await this.#store.save?.()
    } catch (error) {
      for (const count of counts.values()) this.#restore(count)
      throw error
    }
  }

  #restore (count: UsageCount): void {
    const { day, user, key, server, tool, calls, errors: failed, resultTokens } = count
    const id = JSON.stringify([day, user, key, server, tool])
    const later = this.#waiting.get(id)
    this.#waiting.set(id, {
      ...count,
      calls: calls + (later?.calls ?? 0),
      errors: failed + (later?.errors ?? 0),
      resultTokens: resultTokens + (later?.resultTokens ?? 0)
    })
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
