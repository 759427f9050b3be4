export type ActivityStatus = 'success' | 'error'

/** The record of a call. The caller removes secrets, and truncates `input` and `output`, which are text. */
export interface Activity {
  /** A UUID. */
  readonly id: string
  readonly timestamp: number
  readonly server: string
  readonly tool: string
  /** In ms. */
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
  /** The OAuth client whose access token the call came with. */
  readonly clientId?: string
  /** Its name at that time; the storage adds it where it knows the client. */
  readonly clientName?: string
  /** The input, the output and the message of an error are sealed with a key that is not available. */
  readonly locked?: true
}

/** A filter for activities, which must match all given members; `from` is inclusive, `to` exclusive. */
export interface ActivityFilter
  extends Partial<Pick<Activity, 'server' | 'tool' | 'status' | 'group' | 'username' | 'keyId' | 'keyName'>> {
  readonly from?: number
  readonly to?: number
}

/** The values to filter by, sorted; at most 1,000 of each. */
export interface ActivityValues {
  readonly servers: readonly string[]
  readonly tools: readonly string[]
  readonly groups: readonly string[]
  readonly usernames: readonly string[]
  readonly keyNames: readonly string[]
}

/** One page of activities, newest first. `total`: entries on all pages; `approximate`: it is an estimate. */
export interface ActivityPage { readonly activities: Activity[], readonly total: number, readonly approximate: boolean }

/** The record of calls. Available with a database only. */
export interface Activities {
  /**
   * Adds a batch. Activities that exist already, by id, are skipped: after an error the same batch may be added again.
   */
  append: (batch: readonly Activity[]) => Promise<void>
  /**
   * Lists a page. `total` is exact to 10,000, and an estimate beyond. A page holds payloads (`input` and `output`) up
   * to 8 MiB; activities further down on it come without theirs, which `find` has.
   * @param page from 1 @param limit entries per page
   */
  list: (filter: ActivityFilter, page: number, limit: number) => Promise<ActivityPage>
  find: (id: string) => Promise<Activity | undefined>
  /** The values that occur. `from` and `to` count to the hour. */
  values: (filter: ActivityFilter) => Promise<ActivityValues>
  /** The number of calls and of failed calls, and the mean duration in ms; 0 if there are none. */
  stats: (filter: ActivityFilter) => Promise<{ total: number, errors: number, duration: number }>
  /** Removes the activities before a time, in small steps. @returns the number of removed ones */
  cleanup: (before: number) => Promise<number>
  /**
   * Removes some of the activities before a time.
   * @returns their number; 0 also when another replica removes some at this moment
   */
  expire: (before: number) => Promise<number>
}
