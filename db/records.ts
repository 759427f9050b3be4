// The contract for short-lived data beside the settings: entries by keys, in collections. Every method throws
// StorageError when the storage cannot be used now; whether a write was made is then unknown. Times are in ms since
// 1970.

/** A kind of entry, with its bounds. */
export interface Collection {
  readonly name: string
  /**
   * Without a database, it is a section of the settings file. Other collections are then in memory, and a restart ends
   * them.
   */
  readonly isInFile?: true
  /** A database, and the settings file, store the values sealed. */
  readonly isSealed?: true
  /** Max entries; beyond, the oldest are removed, or those of the owners with the most entries. */
  readonly maxEntries: number
  readonly maxInFile?: number
  readonly evicts?: 'oldest' | 'largest owners'
  /** Max entries of one owner; beyond, the owner's oldest are removed. */
  readonly maxPerOwner?: number
}

export interface Entry {
  readonly key: string
  /** Plain JSON. */
  readonly value: unknown
  readonly owner?: string
  /** Texts to find and remove entries by, such as `client:<id>`. */
  readonly labels?: readonly string[]
  /** The time by which entries are ordered, and the oldest removed; undefined: now. */
  readonly at?: number
  readonly expiresAt?: number
  /** In place of `expiresAt`: the time until then in ms, by the clock of the storage. */
  readonly expiresIn?: number
  /** Changes with each write; undefined: the storage makes one. */
  readonly version?: string
}

export interface StoredEntry extends Pick<Entry, 'owner' | 'expiresAt'> {
  readonly labels: readonly string[]
  readonly version: string
  /** The time since the last write in ms, by the clock of the storage. */
  readonly age: number
  /** undefined also in a brief list, and where `isLocked`. */
  readonly value: unknown
  /** The value is sealed with a key that is not available, or was sealed for another key. */
  readonly isLocked?: true
}

/** Which entries to list or remove: all that match each given member. */
export interface Selection {
  readonly owner?: string
  /** Entries with any of these labels. */
  readonly labels?: readonly string[]
  /** Entries that were written within this time, in ms. */
  readonly changedWithin?: number
}

/** Entries that have expired are not found, listed or replaced: they count as none. */
export interface Records {
  /** Whether all collections outlive this process. */
  readonly outlivesProcess: boolean
  /** Stores entries in place of those with the same keys. */
  put: (collection: Collection, entries: readonly Entry[]) => Promise<void>
  find: (collection: Collection, key: string) => Promise<StoredEntry | undefined>
  /**
   * Stores an entry if the stored one still has this version, and others in the same transaction. Of all callers on all
   * replicas that name the same version, one succeeds.
   * @param version undefined: nothing is stored under the key
   */
  swap: (collection: Collection, version: string | undefined, entry: Entry, added?: readonly Entry[]) =>
  Promise<boolean>
  /** Lists entries by `at`, the newest first. @param isBrief leaves the values out */
  list: (collection: Collection, which: Selection, isBrief?: boolean) => Promise<StoredEntry[]>
  /** @returns how many were removed */
  remove: (collection: Collection, which: string | Selection) => Promise<number>
}

/** How long a taken grant, a revoked family and a removed login are remembered, in ms. */
export const retention = 60 * 60_000

export const collections = {
  /** By hash. The owner is `waiting` or `taken`, so that neither kind makes the other one go. */
  grants: { name: 'grants', isSealed: true, maxEntries: 200_000, maxPerOwner: 100_000 },
  /** By hash; the owner is the family. */
  tokens: { name: 'oauthTokens', isInFile: true, maxEntries: 1_000_000, maxInFile: 20_000, evicts: 'largest owners' },
  revokedFamilies: { name: 'revokedFamilies', maxEntries: 1_000_000 },
  consents: { name: 'oauthConsents', isInFile: true, maxEntries: 1_000_000, maxInFile: 20_000, maxPerOwner: 100 },
  loginStates: { name: 'loginStates', isSealed: true, maxEntries: 20_000, maxPerOwner: 50 },
  /** By hash; the value is the hash of the answers. */
  usedStates: { name: 'usedStates', maxEntries: 20_000 },
  upstreamTokens: { name: 'upstreamTokens', isInFile: true, isSealed: true, maxEntries: 100_000, maxInFile: 5_000 },
  /** By login and version. */
  upstreamClaims: { name: 'upstreamClaims', maxEntries: 100_000 },
  /** By the hash of the cookie; the owner is the user. */
  consoleSessions: {
    name: 'consoleSessions', isInFile: true, maxEntries: 100_000, maxInFile: 2_000, maxPerOwner: 50
  },
  removedLogins: { name: 'removedLogins', maxEntries: 100_000 }
} as const satisfies Record<string, Collection>

/** The sections of the settings file that hold records. */
export const recordSections: readonly string[] =
  Object.values<Collection>(collections).flatMap(({ name, isInFile }) => isInFile ? [name] : [])
