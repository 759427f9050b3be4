import type { Static } from '@sinclair/typebox'
import type { ActivityFilterChoices } from '../../schemas/activities.ts'
import type { Policy } from '../../schemas/policies.ts'

export type ActivityStatus = 'success' | 'error'

/**
 * The record of one call. The caller of `append` has removed secrets from it, and truncated the texts `input` and
 * `output`.
 */
export interface Activity {
  /** A UUID. */
  readonly id: string
  /** The time of the call, in ms since 1970. */
  readonly timestamp: number
  readonly server: string
  readonly tool: string
  /** The duration, in ms. */
  readonly duration: number
  readonly status: ActivityStatus
  readonly input?: string
  readonly output?: string
  readonly group?: string
  readonly username?: string
  readonly keyId?: string
  readonly keyName?: string
  readonly sourceIp?: string
  readonly errorMessage?: string
  /** The id of the OAuth client whose access token authenticated the call. */
  readonly clientId?: string
  /** The name of the OAuth client at the time of the call. The storage adds it, if the client exists. */
  readonly clientName?: string
  /** The policy that decided whether the call was allowed, or would have decided it in mode `enforce`. */
  readonly policy?: {
    readonly id: string
    readonly name: string
    readonly mode: 'enforce' | 'observe'
    readonly decision: Policy['then']
    /** The policies in mode `observe` that would have decided, if there are others than this one. */
    readonly observed?: ReadonlyArray<{ readonly id: string, readonly name: string, readonly decision: Policy['then'] }>
  }
  /** The guards that matched the call. `found`: the kinds of content that a guard found. */
  readonly guards?: ReadonlyArray<{
    readonly id: string, readonly name: string, readonly action: string, readonly found: readonly string[]
  }>
  /** Set if a policy, guard or quota refused the call before it reached the server, or withheld its result. */
  readonly refused?: true
  /** Set if the input, the output and other details are missing because they cannot be decrypted. */
  readonly locked?: true
}

/** Selects the activities that match all given members. `from` is inclusive, `to` exclusive, both in ms since 1970. */
export interface ActivityFilter
  extends Partial<Pick<Activity, 'server' | 'tool' | 'status' | 'group' | 'username' | 'keyId' | 'keyName'>> {
  readonly from?: number
  readonly to?: number
}

/** `count` consecutive time spans of `length` ms; the first begins at `from`, in ms since 1970. All are integers. */
export interface TimeIntervals { readonly from: number, readonly length: number, readonly count: number }

/** The distinct values of the members that can be filtered by, such as all tools: sorted, at most 1,000 per member. */
export type ActivityFilterValues = Readonly<Static<typeof ActivityFilterChoices>>

/** A page of activities, newest first. `total`: the number on all pages; `approximate`: whether that is an estimate. */
export interface ActivityPage { readonly activities: Activity[], readonly total: number, readonly approximate: boolean }

/** Stores and queries the records of calls. Available only with a database. */
export interface Activities {
  /** Adds a batch. Skips activities whose id already exists, so that a caller can repeat the call after an error. */
  append: (batch: readonly Activity[]) => Promise<void>
  /**
   * Lists a page. `total` is exact up to 10,000, and an estimate beyond. The encrypted details (`input`, `output` and
   * others) of a page are limited to 8 MiB in total; activities beyond that lack the details, which `find` returns.
   * @param page the number of the page, beginning with 1
   * @param limit the number of activities per page
   */
  list: (filter: ActivityFilter, page: number, limit: number) => Promise<ActivityPage>
  find: (id: string) => Promise<Activity | undefined>
  /** Lists the distinct values that occur in the matching calls. */
  listFilterValues: (filter: ActivityFilter) => Promise<ActivityFilterValues>
  /** Returns, by username, the time of each user's newest call of a server, in ms since 1970. */
  lastUses: (server: string) => Promise<ReadonlyMap<string, number>>
  /**
   * Returns the number of matching calls, the number of failed ones among them, and the mean `duration` of all matching
   * calls, in ms. All are 0 if no call matches.
   */
  stats: (filter: ActivityFilter) => Promise<{ total: number, errors: number, duration: number }>
  /**
   * Counts the matching calls, and the failed ones among them, in each of several time spans. This is fast if the spans
   * consist of whole UTC hours; otherwise, all calls in the spans are read.
   */
  series: (
    filter: Omit<ActivityFilter, 'to'>, spans: TimeIntervals
  ) => Promise<ReadonlyArray<{ readonly total: number, readonly errors: number }>>
  /**
   * Returns a quantile of the durations of the newest 10,000 matching calls, in ms; undefined if no call matches.
   * @param share the quantile, from 0 to 1: 0.95 is the 95th percentile
   */
  durationQuantile: (filter: ActivityFilter, share: number) => Promise<number | undefined>
  /** Removes all activities before a time (in ms since 1970), in small steps. @returns how many were removed */
  removeBefore: (before: number) => Promise<number>
  /**
   * Removes a limited number of activities before a time (in ms since 1970), oldest first.
   * @returns how many were removed; 0 if there are none, or if another replica is removing activities
   */
  removeSomeBefore: (before: number) => Promise<number>
}
