// The contract for data beside the settings that changes with logins and calls, such as tokens: entries with keys, in
// collections. Every method throws StorageError while the storage is unavailable; it is then unknown whether a write
// took effect. Times are in ms since 1970.

/** A collection of entries, with its bounds. */
export interface RecordCollection {
  readonly name: string
  /**
   * Set if, without a database, the collection is a section of the settings file. Other collections are then in memory,
   * and lost at a restart.
   */
  readonly isInFile?: true
  /** Whether values are encrypted, in a database as well as in the settings file. */
  readonly isSealed?: true
  /** Max entries; beyond, the oldest entries are removed, or those of the owners with the most entries (`evicts`). */
  readonly maxEntries: number
  /** Replaces `maxEntries` in the settings file. */
  readonly maxInFile?: number
  readonly evicts?: 'oldest' | 'largest owners'
  /** Max entries of one owner; beyond, the owner's oldest are removed. */
  readonly maxPerOwner?: number
}

export interface RecordEntry {
  readonly key: string
  /** Plain JSON. */
  readonly value: unknown
  readonly owner?: string
  /** Texts by which entries can be selected, such as `client:<id>`. */
  readonly labels?: readonly string[]
  /** The time by which entries are ordered, and the oldest removed; by default, now. */
  readonly at?: number
  readonly expiresAt?: number
  /** Lifetime in ms from now, by the clock of the storage; an alternative to `expiresAt`. */
  readonly expiresIn?: number
  /** An id that changes with each write; by default, the storage generates one. */
  readonly version?: string
}

export interface StoredRecord extends Pick<RecordEntry, 'owner' | 'expiresAt'> {
  readonly labels: readonly string[]
  readonly version: string
  /** The time since the last write, in ms, by the clock of the storage. */
  readonly age: number
  /** The value; undefined in a brief list, and if `isLocked`. */
  readonly value: unknown
  /**
   * Whether the value cannot be decrypted: its encryption key is not available, or it was encrypted for another entry.
   */
  readonly isLocked?: true
}

/** Selects entries to list or remove: those that match all given members. */
export interface RecordFilter {
  readonly owner?: string
  /** Entries with any of these labels. */
  readonly labels?: readonly string[]
  /** Entries that were written within this time, in ms. */
  readonly changedWithin?: number
}

/** Stores and finds entries. Expired entries are treated as absent. */
export interface Records {
  /** Whether all collections survive a restart of this process. */
  readonly outlivesProcess: boolean
  /** Stores entries in place of those with the same keys. */
  put: (collection: RecordCollection, entries: readonly RecordEntry[]) => Promise<void>
  find: (collection: RecordCollection, key: string) => Promise<StoredRecord | undefined>
  /**
   * Stores an entry if the stored one still has this version, and `added` in the same transaction. If several callers,
   * on any replica, name the same version, exactly one succeeds.
   * @param version the version of the entry to replace; undefined adds an entry whose key is not in use
   */
  swap: (
    collection: RecordCollection, version: string | undefined, entry: RecordEntry, added?: readonly RecordEntry[]
  ) =>
  Promise<boolean>
  /** Lists entries by `at`, newest first. @param isBrief omits the values */
  list: (collection: RecordCollection, filter: RecordFilter, isBrief?: boolean) => Promise<StoredRecord[]>
  /** Removes one entry by its key, or those that match a filter. @returns how many were removed */
  remove: (collection: RecordCollection, keyOrFilter: string | RecordFilter) => Promise<number>
}

/** How long it is remembered that a one-time value was taken, a token family revoked, or a login removed, in ms. */
export const tombstoneRetention = 60 * 60_000

export const recordCollections = {
  /** One-time values, keyed by hash. The owner is `waiting` or `taken`, so that neither kind can evict the other. */
  grants: { name: 'grants', isSealed: true, maxEntries: 200_000, maxPerOwner: 100_000 },
  /** Access and refresh tokens, keyed by hash; the owner is the token family. */
  tokens: { name: 'oauthTokens', isInFile: true, maxEntries: 1_000_000, maxInFile: 20_000, evicts: 'largest owners' },
  revokedFamilies: { name: 'revokedFamilies', maxEntries: 1_000_000 },
  consents: { name: 'oauthConsents', isInFile: true, maxEntries: 1_000_000, maxInFile: 20_000, maxPerOwner: 100 },
  loginStates: { name: 'loginStates', isSealed: true, maxEntries: 20_000, maxPerOwner: 50 },
  /**
   * Each `requestState` that a client has returned, keyed by hash; the value is the hash of the answers sent with it.
   */
  usedStates: { name: 'usedStates', maxEntries: 20_000 },
  upstreamTokens: { name: 'upstreamTokens', isInFile: true, isSealed: true, maxEntries: 100_000, maxInFile: 5_000 },
  /** Values that users provide for servers; the owner is the user. */
  userValues: {
    name: 'userValues',
    isInFile: true,
    isSealed: true,
    maxEntries: 100_000,
    maxInFile: 5_000,
    evicts: 'largest owners',
    maxPerOwner: 500
  },
  /** Claims of replicas to renew a login at an upstream server, keyed by login and version. */
  upstreamClaims: { name: 'upstreamClaims', maxEntries: 100_000 },
  /** Sessions of the console, keyed by the hash of the cookie; the owner is the user. */
  consoleSessions: {
    name: 'consoleSessions', isInFile: true, maxEntries: 100_000, maxInFile: 2_000, maxPerOwner: 50
  },
  /** Calls that wait or waited for an approval, keyed by id. The owner is the calling user, else the principal. */
  approvals: {
    name: 'approvals',
    isInFile: true,
    isSealed: true,
    maxEntries: 10_000,
    maxInFile: 500,
    evicts: 'largest owners',
    maxPerOwner: 100
  },
  removedLogins: { name: 'removedLogins', maxEntries: 100_000 },
  /** The pinned definitions of servers, keyed by the server's name; without a database they are in DATA_DIR. */
  pins: { name: 'pins', maxEntries: 100_000 },
  /** Webhooks that clients registered for events; the owner is the principal. They expire after the granted time. */
  eventSubscriptions: {
    name: 'eventSubscriptions',
    isInFile: true,
    isSealed: true,
    maxEntries: 100_000,
    maxInFile: 2_000,
    evicts: 'largest owners',
    maxPerOwner: 1_000
  },
  /**
   * Messages for these webhooks: waiting ones and, without their body, settled ones. The owner is the subscription.
   */
  eventDeliveries: {
    name: 'eventDeliveries', isSealed: true, maxEntries: 20_000, evicts: 'largest owners', maxPerOwner: 1_000
  },
  /** Messages that could not be delivered; the owner is the user. */
  failedDeliveries: {
    name: 'failedDeliveries', isSealed: true, maxEntries: 2_000, evicts: 'largest owners', maxPerOwner: 100
  },
  /** Tasks that clients started, keyed by id. The owner is `TaskRecord.owner`, the label is the stored user. */
  tasks: { name: 'tasks', maxEntries: 20_000, evicts: 'largest owners', maxPerOwner: 1_000 },
  /** Usage counters, keyed by day, caller and item; the label is the day. */
  usage: { name: 'usage', maxEntries: 500_000 }
} as const satisfies Record<string, RecordCollection>

/** The sections of the settings file that contain records. */
export const recordSectionNames: readonly string[] =
  Object.values<RecordCollection>(recordCollections).flatMap(({ name, isInFile }) => isInFile ? [name] : [])

type Collections = typeof recordCollections
type SealedName =
  { [Name in keyof Collections]: Collections[Name] extends { isSealed: true } ? Name : never }[keyof Collections]

const sealedKinds: Readonly<Record<SealedName, string>> = {
  upstreamTokens: 'logins at servers',
  userValues: 'users\' values for servers',
  loginStates: 'sessions of browsers',
  grants: 'authorization codes',
  approvals: 'approvals of calls',
  eventSubscriptions: 'webhooks for events',
  eventDeliveries: 'messages for webhooks',
  failedDeliveries: 'undelivered messages for webhooks'
}

/** The collections whose values are encrypted. `what`: the kind of their values, in the plural, for messages. */
export const sealedCollections: ReadonlyArray<{ readonly collection: RecordCollection, readonly what: string }> =
  (Object.keys(sealedKinds) as SealedName[])
    .map((name) => ({ collection: recordCollections[name], what: sealedKinds[name] }))

/** The labels for the client and the user of a record, in all collections. */
export const clientLabel = (clientId: string): string => `client:${clientId}`
export const userLabel = (username: string): string => `user:${username}`
