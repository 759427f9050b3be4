import { recordCollections, RecordPort } from '../records.ts'

/** How long usage counters are kept, in days. */
export const usageRetentionDays = 400
const dayInMs = 86_400_000
/** Max attempts to add to a counter that other replicas change concurrently. */
const maxAttempts = 50

const labelOf = (day: string): string => `day:${day}`

/** The numbers of calls, errors and result tokens of one caller and one item on one day. */
export interface UsageCount {
  /** The day in UTC, such as 2026-11-30. */
  readonly day: string
  /**
   * The username; on the day on which the account was created, followed by the time of its creation, since an account
   * of the same name may have been removed that day. Empty for a caller without a username.
   */
  readonly user: string
  /** The id of the bearer key; empty if the caller used none. */
  readonly key: string
  readonly server: string
  /** The tool by its own name; empty for prompts and resources. */
  readonly tool: string
  readonly calls: number
  readonly errors: number
  readonly resultTokens: number
}

/** Stores the usage counters of callers. */
export interface UsageCounts {
  /**
   * Adds counts to the stored counters.
   * @throws Error also when replicas change a counter too often at the same time
   */
  add: (counts: readonly UsageCount[]) => Promise<void>
  /** Lists the counters of several days. @param days the days in UTC, as in `UsageCount.day` */
  list: (days: readonly string[]) => Promise<UsageCount[]>
  /** Adds the counters that a former process has saved with `save`, if the counters are in memory. */
  load: () => Promise<void>
  /** Saves the counters for the next process, if they are in memory. */
  save: () => Promise<void>
}

/** Returns a text that identifies the counter of a count. */
export const usageKeyOf = ({ day, user, key, server, tool }: UsageCount): string =>
  JSON.stringify([day, user, key, server, tool])

/** Adds a count to the former value of its counter. */
export const addCounts = (count: UsageCount, former: UsageCount | undefined): UsageCount => ({
  ...count,
  calls: count.calls + (former?.calls ?? 0),
  errors: count.errors + (former?.errors ?? 0),
  resultTokens: count.resultTokens + (former?.resultTokens ?? 0)
})

/** Stores the usage counters as records. */
export class RecordUsageCounts extends RecordPort implements UsageCounts {
  async add (counts: readonly UsageCount[]): Promise<void> {
    for (const count of counts) {
      let isAdded = false
      for (let attempt = 0; !isAdded && attempt < maxAttempts; attempt++) isAdded = await this.#tryToAdd(count)
      if (!isAdded) throw new Error('too many replicas change the same counter')
    }
  }

  async list (days: readonly string[]): Promise<UsageCount[]> {
    const found = await this.records.list(recordCollections.usage, { labels: days.map(labelOf) })
    return found.map(({ value }) => value as UsageCount)
  }

  /** `load` and `save` do nothing, since a database stores the records. */
  async load (): Promise<void> {}
  async save (): Promise<void> {}

  async #tryToAdd (count: UsageCount): Promise<boolean> {
    const key = usageKeyOf(count)
    const former = await this.records.find(recordCollections.usage, key)
    const value = addCounts(count, former?.value as UsageCount | undefined)
    return await this.records.swap(recordCollections.usage, former?.version, {
      key, value, labels: [labelOf(count.day)], expiresAt: Date.parse(count.day) + usageRetentionDays * dayInMs
    })
  }
}
