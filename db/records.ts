// The contract for data outside the settings that changes with logins and calls, such as tokens: entries with keys, in
// collections. Each method throws StorageError while the storage is unavailable; it is then unknown whether a write
// took effect. Times are in ms since 1970.

/** The name, the storage and the limits of a collection of entries. */
export interface RecordCollection {
  readonly name: string
  /**
   * Set if the collection is a section of the settings file when there is no database. Without a database, the other
   * collections are in memory, and lost at a restart.
   */
  readonly isInFile?: true
  /** Whether values are encrypted, in a database as well as in the settings file. */
  readonly isSealed?: true
  /**
   * Max number of entries. Beyond it, the oldest entries are removed or, if `evicts` is `largest owners`, all entries
   * of the owners that have the most.
   */
  readonly maxEntries: number
  /** Max number of entries in the settings file; by default `maxEntries`. */
  readonly maxInFile?: number
  readonly evicts?: 'oldest' | 'largest owners'
  /** Max number of entries of one owner. Beyond it, the oldest entries of the owner are removed. */
  readonly maxPerOwner?: number
}

/** An entry to store. */
export interface RecordEntry {
  readonly key: string
  /** Plain JSON. */
  readonly value: unknown
  readonly owner?: string
  /** Texts by which a `RecordFilter` can select the entry, such as `client:<id>`. */
  readonly labels?: readonly string[]
  /** The time by which entries are sorted, and by which the oldest entries are found; by default, now. */
  readonly at?: number
  readonly expiresAt?: number
  /** Lifetime in ms from now, by the clock of the storage; an alternative to `expiresAt`. */
  readonly expiresIn?: number
  /** An id that changes with each write; by default, the storage generates one. */
  readonly version?: string
}

/** An entry as read from the storage. */
export interface StoredRecord extends Pick<RecordEntry, 'owner' | 'expiresAt'> {
  readonly labels: readonly string[]
  readonly version: string
  /** The time since the last write, in ms, by the clock of the storage. */
  readonly age: number
  /** The value; undefined if `isLocked`, and possibly in a brief list. */
  readonly value: unknown
  /**
   * Set if the value cannot be decrypted: its encryption key is not available, or it was encrypted for another entry.
   */
  readonly isLocked?: true
}

/** Selects the entries to list or remove, which must match all given members. */
export interface RecordFilter {
  readonly owner?: string
  /** Selects entries that have at least one of these labels. */
  readonly labels?: readonly string[]
  /** Selects entries whose last write is less than this time ago, in ms. */
  readonly changedWithin?: number
}

/** Stores and finds the entries of collections. An expired entry is treated as absent. */
export interface Records {
  /** Whether all collections survive a restart of this process. */
  readonly outlivesProcess: boolean
  /** Stores entries in place of those with the same keys. */
  put: (collection: RecordCollection, entries: readonly RecordEntry[]) => Promise<void>
  find: (collection: RecordCollection, key: string) => Promise<StoredRecord | undefined>
  /**
   * Replaces an entry if it still has a given version. If several callers, on any replica, name the same version,
   * exactly one succeeds.
   * @param version the version of the entry to replace; undefined means that no entry may have this key yet
   * @param added further entries, which are stored in the same transaction if the swap succeeds
   * @returns whether the entry was stored
   */
  swap: (
    collection: RecordCollection, version: string | undefined, entry: RecordEntry, added?: readonly RecordEntry[]
  ) =>
  Promise<boolean>
  /** Lists entries by `at`, newest first. @param isBrief whether values may be omitted */
  list: (collection: RecordCollection, filter: RecordFilter, isBrief?: boolean) => Promise<StoredRecord[]>
  /** Removes the entry with a key, or the entries that match a filter. @returns how many were removed */
  remove: (collection: RecordCollection, keyOrFilter: string | RecordFilter) => Promise<number>
}

/** The base of the ports that store their data as records. */
export abstract class RecordPort {
  protected readonly records: Records

  constructor (records: Records) {
    this.records = records
  }
}

/**
 * How long the gateway remembers that a one-time value was taken, a token family revoked, or a login or a user's values
 * removed, in ms.
 */
export const tombstoneRetention = 60 * 60_000

export const recordCollections = {
  /**
   * One-time values, keyed by hash. The owner is `waiting` or `taken`, so that values of one kind never evict those of
   * the other.
   */
  grants: { name: 'grants', isSealed: true, maxEntries: 200_000, maxPerOwner: 100_000 },
  /** Access and refresh tokens of OAuth clients, keyed by hash; the owner is the token family. */
  tokens: { name: 'oauthTokens', isInFile: true, maxEntries: 1_000_000, maxInFile: 20_000, evicts: 'largest owners' },
  revokedFamilies: { name: 'revokedFamilies', maxEntries: 1_000_000 },
  consents: { name: 'oauthConsents', isInFile: true, maxEntries: 1_000_000, maxInFile: 20_000, maxPerOwner: 100 },
  loginStates: { name: 'loginStates', isSealed: true, maxEntries: 20_000, maxPerOwner: 50 },
  /**
   * Each `requestState` that a client has returned, keyed by hash; the value is the hash of the answers sent along.
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
  /** Claims by which a replica reserves the renewal of a login at an upstream server, keyed by login and version. */
  upstreamClaims: { name: 'upstreamClaims', maxEntries: 100_000 },
  /** Sessions of the console, keyed by the hash of the cookie; the owner is the user. */
  consoleSessions: {
    name: 'consoleSessions', isInFile: true, maxEntries: 100_000, maxInFile: 2_000, maxPerOwner: 50
  },
  /** Calls that wait or waited for an approval, keyed by id. The owner is `Approval.owner`. */
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
  /**
   * The pinned definitions of servers, keyed by the server's name. Used only with a database; otherwise, `FilePinStore`
   * keeps them in files.
   */
  pins: { name: 'pins', maxEntries: 100_000 },
  /** Webhooks that clients registered for events, until the granted time has passed; the owner is the principal. */
  eventSubscriptions: {
    name: 'eventSubscriptions',
    isInFile: true,
    isSealed: true,
    maxEntries: 100_000,
    maxInFile: 2_000,
    evicts: 'largest owners',
    maxPerOwner: 1_000
  },
  /** Subscriptions that their servers have ended, for the messages that still wait; the owner is the principal. */
  endedSubscriptions: {
    name: 'endedSubscriptions', isSealed: true, maxEntries: 20_000, evicts: 'largest owners', maxPerOwner: 1_000
  },
  /**
   * Messages for the webhooks of `eventSubscriptions`: waiting ones, and settled ones without their body. The owner is
   * the subscription.
   */
  eventDeliveries: {
    name: 'eventDeliveries', isSealed: true, maxEntries: 20_000, evicts: 'largest owners', maxPerOwner: 1_000
  },
  /** Messages for webhooks that could not be delivered; the owner is the user. */
  failedDeliveries: {
    name: 'failedDeliveries', isSealed: true, maxEntries: 2_000, evicts: 'largest owners', maxPerOwner: 100
  },
  /** Tasks that clients started, keyed by id. The owner is `TaskRecord.owner`, the label names the stored user. */
  tasks: { name: 'tasks', maxEntries: 20_000, evicts: 'largest owners', maxPerOwner: 1_000 },
  /** Usage counters, keyed by day, caller and item; the label is the day. */
  usage: { name: 'usage', maxEntries: 500_000 }
} as const satisfies Record<string, RecordCollection>

/** The names of the sections of the settings file that contain records. */
export const inFileCollectionNames: readonly string[] =
  Object.values<RecordCollection>(recordCollections).flatMap(({ name, isInFile }) => isInFile ? [name] : [])

/**
 * The names of the collections whose entries stay valid when they are used: a restore takes the entries of the backup.
 */
export const reusableCollectionNames: readonly string[] =
  [recordCollections.upstreamTokens.name, recordCollections.userValues.name]

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
  endedSubscriptions: 'ended webhooks for events',
  eventDeliveries: 'messages for webhooks',
  failedDeliveries: 'undelivered messages for webhooks'
}

/** The collections whose values are encrypted. `what`: the kind of their values, in the plural, for messages. */
export const sealedCollections: ReadonlyArray<{ readonly collection: RecordCollection, readonly what: string }> =
  (Object.keys(sealedKinds) as SealedName[])
    .map((name) => ({ collection: recordCollections[name], what: sealedKinds[name] }))

/** Returns the label of records that belong to an OAuth client, the same in each collection. */
export const clientLabel = (clientId: string): string => `client:${clientId}`
/** Returns the label of records that belong to a user, the same in each collection. */
export const userLabel = (username: string): string => `user:${username}`
