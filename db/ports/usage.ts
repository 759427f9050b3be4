/** The calls, errors and result tokens of one caller and one item on one day. */
export interface UsageCount {
  /** The day in UTC, such as 2026-11-30. */
  readonly day: string
  /**
   * The username, followed by the time of the account's creation on the day of that creation; empty for a caller
   * without a username.
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

/** Usage counters of callers, for all replicas. */
export interface UsageCounts {
  /** Adds to the counters. */
  add: (counts: readonly UsageCount[]) => Promise<void>
  /** The counters of some days. */
  list: (days: readonly string[]) => Promise<UsageCount[]>
  /** Reads the counters saved by a former process, with those of quotas. Absent if the storage itself keeps them. */
  load?: () => Promise<void>
  save?: () => Promise<void>
}

/** How long the counters of a day are kept, in days. */
export const usageRetention = 400
