/** Whose values these are, and for what. */
export interface UserValueKey {
  readonly server: string
  readonly user: string
  /** Identifies the account, and never a later one of the same name. */
  readonly account: string
  /** Identifies where the values may be sent. */
  readonly target: string
}

/** The stored values of one user for one server. Each change gives them another `version`. */
export interface StoredUserValues extends UserValueKey {
  readonly version: string
  /** By the names of the variables; empty if the user has taken them back. */
  readonly values: Readonly<Record<string, string>>
  /** In ms since the epoch. */
  readonly updatedAt: number
}

/** The values that users give for servers. They are stored encrypted; what cannot be decrypted counts as absent. */
export interface UserValueRecords {
  find: (server: string, user: string) => Promise<StoredUserValues | undefined>
  /** The values of all users of a server. */
  list: (server: string) => Promise<StoredUserValues[]>
  /**
   * Stores values in place of those with this version. If several callers, on any replica, name the same version,
   * exactly one succeeds.
   * @param version undefined if there are none
   */
  swap: (key: UserValueKey, version: string | undefined, values: Readonly<Record<string, string>>) => Promise<boolean>
  /** Forgets the values of a user for a server, so that every replica learns of it. */
  forget: (key: UserValueKey) => Promise<void>
  /** Removes the values for a target of a server, or those of an account. */
  removeAll: (which: Pick<UserValueKey, 'server' | 'target'> | Pick<UserValueKey, 'account'>) => Promise<void>
  /** Lists the values that any replica stored or removed within the last `time` ms. */
  listChangedWithin: (time: number) => Promise<Array<Pick<StoredUserValues, 'server' | 'user' | 'version'>>>
  /** Removes what belongs to no target and no account any more. @param isCurrent whether it does */
  sweep: (isCurrent: (key: UserValueKey) => boolean) => Promise<void>
}
