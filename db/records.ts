// The contract for short-lived data beside the settings: entries with keys, in collections. Every method throws
// StorageError when the storage cannot be used now; it is then unknown whether a write took effect. Times are in ms
// since 1970.

/** A kind of entry, with its bounds. */
export interface Collection {
  readonly name: string
  /**
   * Without a database, the collection is stored as a section of the settings file. Other collections are then in
   * memory, and lost at a restart.
   */
  readonly isInFile?: true
  /** Values are encrypted, in a database as well as in the settings file. */
  readonly isSealed?: true
  /** Max entries; beyond, the oldest entries are removed, or those of the owners with the most entries (`evicts`). */
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
  /** Texts by which entries can be selected, such as `client:<id>`. */
  readonly labels?: readonly string[]
  /** The time by which entries are ordered and the oldest removed; undefined: now. */
  readonly at?: number
  readonly expiresAt?: number
  /** Lifetime in ms from now, by the clock of the storage; an alternative to `expiresAt`. */
  readonly expiresIn?: number
  /** Changes with each write; undefined: the storage generates one. */
  readonly version?: string
}

export interface StoredEntry extends Pick<Entry, 'owner' | 'expiresAt'> {
  readonly labels: readonly string[]
  readonly version: string
  /** The time since the last write, in ms, by the clock of the storage. */
  readonly age: number
  /** Also undefined in a brief list, and if `isLocked`. */
  readonly value: unknown
  /** The value cannot be decrypted: its encryption key is not available, or it was encrypted for another entry. */
  readonly isLocked?: true
}

/** Selects entries to list or remove: those that match all given members. */
export interface Selection {
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
  put: (collection: Collection, entries: readonly Entry[]) => Promise<void>
  find: (collection: Collection, key: string) => Promise<StoredEntry | undefined>
  /**
   * Stores an entry if the stored one still has this version, and `added` in the same transaction. If several callers,
   * on any replica, name the same version, exactly one succeeds.
   * @param version undefined: nothing may be stored under the key
   */
  swap: (collection: Collection, version: string | undefined, entry: Entry, added?: readonly Entry[]) =>
  Promise<boolean>
  /** Lists entries by `at`, newest first. @param isBrief omits the values */
  list: (collection: Collection, which: Selection, isBrief?: boolean) => Promise<StoredEntry[]>
  /** @returns how many were removed */
  remove: (collection: Collection, which: string | Selection) => Promise<number>
}

/** How long a taken grant, a revoked token family and a removed login are remembered, in ms. */
export const retention = 60 * 60_000

export const collections = {
  /** Keyed by hash. The owner is `waiting` or `taken`, so that neither kind can evict the other. */
  grants: { name: 'grants', isSealed: true, maxEntries: 200_000, maxPerOwner: 100_000 },
  /** Keyed by hash; the owner is the token family. */
  tokens: { name: 'oauthTokens', isInFile: true, maxEntries: 1_000_000, maxInFile: 20_000, evicts: 'largest owners' },
  revokedFamilies: { name: 'revokedFamilies', maxEntries: 1_000_000 },
  consents: { name: 'oauthConsents', isInFile: true, maxEntries: 1_000_000, maxInFile: 20_000, maxPerOwner: 100 },
  loginStates: { name: 'loginStates', isSealed: true, maxEntries: 20_000, maxPerOwner: 50 },
  /** Keyed by hash; the value is the hash of the answers. */
  usedStates: { name: 'usedStates', maxEntries: 20_000 },
  upstreamTokens: { name: 'upstreamTokens', isInFile: true, isSealed: true, maxEntries: 100_000, maxInFile: 5_000 },
  /** Keyed by login and version. */
  upstreamClaims: { name: 'upstreamClaims', maxEntries: 100_000 },
  /** Keyed by the hash of the cookie; the owner is the user. */
  consoleSessions: {
    name: 'consoleSessions', isInFile: true, maxEntries: 100_000, maxInFile: 2_000, maxPerOwner: 50
  },
  removedLogins: { name: 'removedLogins', maxEntries: 100_000 }
} as const satisfies Record<string, Collection>

/** The sections of the settings file that hold records. */
export const recordSections: readonly string[] =
  Object.values<Collection>(collections).flatMap(({ name, isInFile }) => isInFile ? [name] : [])
