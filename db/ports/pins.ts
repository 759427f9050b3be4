/** The pinned definitions of a server, as plain JSON, with the version of the entry. Each write changes the version. */
export interface StoredPins { readonly value: unknown, readonly version: string }

/** The pinned definitions of servers: one entry for each. Every method throws StorageError when it cannot be used. */
export interface PinStore {
  /** Whether all replicas use the same entries. */
  readonly isShared: boolean
  find: (server: string) => Promise<StoredPins | undefined>
  /**
   * Stores an entry if the stored one still has this version.
   * @param version of the entry to replace; undefined: no entry is stored yet
   * @returns its new version; undefined: somebody else has changed it
   */
  swap: (server: string, version: string | undefined, value: object) => Promise<string | undefined>
  /** Removes what is stored of these servers. */
  remove: (servers: readonly string[]) => Promise<void>
  /** The servers that have entries. @param time only those that were changed within it, in ms */
  list: (time?: number) => Promise<Array<{ readonly server: string, readonly version: string }>>
}
