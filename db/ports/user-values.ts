/** Identifies a user's values for a server. */
export interface UserValueKey {
  readonly server: string
  readonly user: string
  /** Identifies the account; a later account of the same name has another one. */
  readonly account: string
  /** Identifies the target that the values may be sent to. */
  readonly target: string
}

/** The stored values of one user for one server. Each change gives them another `version`. */
export interface StoredUserValues extends UserValueKey {
  readonly version: string
  /** The values by the names of the variables; empty if the user has removed them. */
  readonly values: Readonly<Record<string, string>>
  /** In ms since the epoch. */
  readonly updatedAt: number
}

/**
 * The values that users provide for servers. They are stored encrypted; those that cannot be decrypted are treated as
 * absent.
 */
export interface UserValueRecords {
  find: (server: string, user: string) => Promise<StoredUserValues | undefined>
  /** The values of all users of a server. */
  list: (server: string) => Promise<StoredUserValues[]>
  /**
   * Replaces the values of this version. If several callers, on any replica, use the same version, exactly one
   * succeeds.
   * @param version undefined if there are none
   */
  swap: (key: UserValueKey, version: string | undefined, values: Readonly<Record<string, string>>) => Promise<boolean>
  /** Deletes the values of a user for a server, so that every replica is notified. */
  forget: (key: UserValueKey) => Promise<void>
  /** Removes the values for a target of a server, or those of an account. */
  removeAll: (which: Pick<UserValueKey, 'server' | 'target'> | Pick<UserValueKey, 'account'>) => Promise<void>
  /** Lists the values that any replica stored or removed within the last `time` ms. */
  listChangedWithin: (time: number) => Promise<Array<Pick<StoredUserValues, 'server' | 'user' | 'version'>>>
  /** Removes the values whose target or account no longer exists. @param isCurrent whether both exist */
  sweep: (isCurrent: (key: UserValueKey) => boolean) => Promise<void>
}
