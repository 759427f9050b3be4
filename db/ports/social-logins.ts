/** The binding of a person's identity at a login provider to a local account. */
export interface SocialIdentityLink {
  /** The SHA-256 of the provider's name and the provider's id of the person, in hex (`identityHash`). */
  readonly hash: string
  readonly provider: string
  readonly username: string
  /** The id of the local account (`accountSubjectOf`); a later account with the same username has another one. */
  readonly subject: string
  /** Whether the local account was created for this identity. */
  readonly created: boolean
  /** Whether the username was a verified e-mail address of the person when the identity was bound. */
  readonly verified: boolean
}

/** Stores the data of social login: identities and sessions. Needs a database. */
export interface SocialLogins {
  /** Returns the `database` option of better-auth. The first call loads the library's adapter. */
  loadAdapter: () => Promise<object>
  find: (hash: string) => Promise<SocialIdentityLink | undefined>
  /** Stores an identity. It replaces a stored one with the same hash. */
  put: (identity: SocialIdentityLink) => Promise<void>
  remove: (hash: string) => Promise<void>
  /**
   * Finds the identity for which a local account was created; undefined if the account was not created for an identity.
   */
  findCreatingIdentity: (username: string, subject: string) => Promise<SocialIdentityLink | undefined>
  /**
   * Removes the identities that are bound to a local account, and their sessions.
   * @param emailOf returns the e-mail address under which better-auth stores an identity, from the hash of the identity
   */
  removeIdentities: (username: string, subject: string, emailOf: (hash: string) => string) => Promise<void>
  /**
   * Removes the oldest sessions of a person, so that at most `max` remain; at intervals, also all expired sessions.
   * @param userId the id of the person in better-auth
   */
  trimSessions: (userId: string, max: number) => Promise<void>
}
