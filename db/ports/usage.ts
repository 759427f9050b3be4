import { recordCollections, type Records } from '../records.ts'

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

/** Stores the usage counters of callers, as records. */
export class UsageCounts {
  readonly #records: Records

  constructor (records: Records) {
    this.#records = records
  }

  /**
   * Adds counts to the stored counters.
   * @throws Error also when replicas change a counter too often at the same time
   */
  async add (counts: readonly UsageCount[]): Promise<void> {
    for (const count of counts) {
      let isAdded = false
      for (let attempt = 0; !isAdded && attempt < maxAttempts; attempt++) isAdded = await this.#tryToAdd(count)
      if (!isAdded) throw new Error('too many replicas change the same counter')
    }
  }

  /** Lists the counters of several days. @param days the days in UTC, as in `UsageCount.day` */
  async list (days: readonly string[]): Promise<UsageCount[]> {
    const found = await this.#records.list(recordCollections.usage, { labels: days.map(labelOf) })
    return found.map(({ value }) => value as UsageCount)
  }

  /**
   * Adds the counters that a former process has saved with `save`. Both methods do nothing here, since a database
   * stores the records; `FileUsageCounts` overrides them.
   */
  async load (): Promise<void> {}
  async save (): Promise<void> {}

  async #tryToAdd (count: UsageCount): Promise<boolean> {
    const { day, user, key: keyId, server, tool, calls, errors, resultTokens } = count
    const key = JSON.stringify([day, user, keyId, server, tool])
    const former = await this.#records.find(recordCollections.usage, key)
    const { calls: c, errors: e, resultTokens: t } =
      former?.value as UsageCount | undefined ?? { calls: 0, errors: 0, resultTokens: 0 }
    const value = { ...count, calls: c + calls, errors: e + errors, resultTokens: t + resultTokens }
    return await this.#records.swap(recordCollections.usage, former?.version, {
      key, value, labels: [labelOf(day)], expiresAt: Date.parse(day) + usageRetentionDays * dayInMs
    })
  }
}
