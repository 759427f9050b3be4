import type { Static } from '@sinclair/typebox'
import type { ActivityFilterChoices } from '../../schemas/activities.ts'
import type { Policy } from '../../schemas/policies.ts'

export type ActivityStatus = 'success' | 'error'

/**
 * The record of one call. The caller of the port removes secrets, and truncates `input` and `output`, which are text.
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
  /** The OAuth client whose access token authenticated the call. */
  readonly clientId?: string
  /** The client's name at that time; the storage adds it if it knows the client. */
  readonly clientName?: string
  /** The policy that decided about the call, or would have decided (`observe`). */
  readonly policy?: {
    readonly id: string, readonly name: string, readonly mode: 'enforce' | 'observe', readonly decision: Policy['then']
  }
  /** The guards that matched the call, and the kinds of content that they found. */
  readonly guards?: ReadonlyArray<{
    readonly id: string, readonly name: string, readonly action: string, readonly found: readonly string[]
  }>
  /** Set if a policy, guard or quota refused the call before it reached the server, or withheld its result. */
  readonly refused?: true
  /** Set if the input, the output and other details cannot be decrypted, since the encryption key is not available. */
  readonly locked?: true
}

/** A filter for activities; all members must match. `from` is inclusive, `to` exclusive, both in ms since 1970. */
export interface ActivityFilter
  extends Partial<Pick<Activity, 'server' | 'tool' | 'status' | 'group' | 'username' | 'keyId' | 'keyName'>> {
  readonly from?: number
  readonly to?: number
}

/** `count` consecutive time spans, each `length` ms long, the first from `from` in ms since 1970. All are integers. */
export interface TimeIntervals { readonly from: number, readonly length: number, readonly count: number }

/** The distinct values that can be filtered by, sorted; at most 1,000 of each kind. */
export type ActivityFilterValues = Readonly<Static<typeof ActivityFilterChoices>>

/** One page of activities, newest first. `total`: entries on all pages; `approximate`: whether that is an estimate. */
export interface ActivityPage { readonly activities: Activity[], readonly total: number, readonly approximate: boolean }

/** The record of calls. Available with a database only. */
export interface Activities {
  /** Adds a batch. Activities whose id exists are skipped, so that a caller can repeat the call after an error. */
  append: (batch: readonly Activity[]) => Promise<void>
  /**
   * Lists a page. `total` is exact up to 10,000, and an estimate beyond. The payloads (`input` and `output`) on a page
   * are limited to 8 MiB in total; activities beyond that are returned without them, and `find` returns them.
   * @param page from 1
   * @param limit entries per page
   */
  list: (filter: ActivityFilter, page: number, limit: number) => Promise<ActivityPage>
  find: (id: string) => Promise<Activity | undefined>
  /** Lists the distinct values that occur in matching calls. `from` and `to` are rounded to hours. */
  listFilterValues: (filter: ActivityFilter) => Promise<ActivityFilterValues>
  /** Returns the time of each user's newest call of a server by username, in ms since 1970. */
  lastUses: (server: string) => Promise<ReadonlyMap<string, number>>
  /**
   * Computes the numbers of calls and of failed calls, and their mean `duration` in ms; all are 0 if no call matches.
   */
  stats: (filter: ActivityFilter) => Promise<{ total: number, errors: number, duration: number }>
  /**
   * Counts the matching calls, and the failed ones among them, in each of several time spans. Spans that consist of
   * whole UTC hours are counted fast; for others, all their calls are read.
   */
  series: (
    filter: Omit<ActivityFilter, 'to'>, spans: TimeIntervals
  ) => Promise<ReadonlyArray<{ readonly total: number, readonly errors: number }>>
  /**
   * Computes a quantile of the durations of the newest 10,000 calls, in ms; undefined if there are no calls.
   * @param share the quantile, between 0 and 1: 0.95 is the 95th percentile
   */
  durationQuantile: (filter: ActivityFilter, share: number) => Promise<number | undefined>
  /** Removes all activities before a time, in small steps. @returns the number of removed ones */
  removeBefore: (before: number) => Promise<number>
  /**
   * Removes some of the activities before a time.
   * @returns their number; 0 if there are none, or if another replica is removing activities
   */
  removeSomeBefore: (before: number) => Promise<number>
}
