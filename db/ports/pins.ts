/** The pinned definitions of a server, as plain JSON, with the version of the entry. Each write changes the version. */
export interface StoredPins { readonly value: unknown, readonly version: string }

/**
 * The pinned definitions of servers: one entry per server. Every method throws StorageError while the storage is
 * unavailable.
 */
export interface PinStore {
  /** Whether all replicas share the entries. */
  readonly isShared: boolean
  find: (server: string) => Promise<StoredPins | undefined>
  /**
   * Stores an entry if the stored one still has this version.
   * @param version the version of the entry to replace; undefined if none is stored yet
   * @returns the new version; undefined if the entry has changed in the meantime
   */
  swap: (server: string, version: string | undefined, value: object) => Promise<string | undefined>
  /** Removes the entries of these servers. */
  remove: (servers: readonly string[]) => Promise<void>
  /** The servers that have entries. @param time lists only entries changed within this time, in ms */
  list: (time?: number) => Promise<Array<{ readonly server: string, readonly version: string }>>
}
