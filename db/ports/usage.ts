/** The calls, errors and result tokens of one caller and one item on one day. */
export interface UsageCount {
  /** In UTC, as 2026-11-30. */
  readonly day: string
  /** The username, on the day of the account's creation followed by its time; empty for a caller without one. */
  readonly user: string
  /** The id of the bearer key; empty: the caller used none. */
  readonly key: string
  readonly server: string
  /** The tool by its own name; empty for prompts and resources. */
  readonly tool: string
  readonly calls: number
  readonly errors: number
  readonly resultTokens: number
}

/** Counters of what callers have used, for all replicas. */
export interface UsageCounts {
  /** Adds to the counters. */
  add: (counts: readonly UsageCount[]) => Promise<void>
  /** The counters of some days. */
  list: (days: readonly string[]) => Promise<UsageCount[]>
  /** Reads what a former process has saved, with the counters of quotas. Absent where the storage keeps them itself. */
  load?: () => Promise<void>
  save?: () => Promise<void>
}

/** How long the counters of a day are kept, in days. */
export const usageRetention = 400
