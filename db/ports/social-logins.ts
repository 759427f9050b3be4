/** The binding of an identity at a provider to a local account. */
export interface SocialIdentity {
  /** The SHA-256 of provider and subject, in hex. */
  readonly hash: string
  readonly provider: string
  readonly username: string
  /** Identifies the local account; a later account of the same name has another subject. */
  readonly subject: string
  /** Whether the local account was created for this identity. */
  readonly created: boolean
  /** Whether the username was a verified e-mail address of the identity when it was bound. */
  readonly verified: boolean
}

/** The storage of social login: identities, sessions, and the key that signs session cookies. Needs a database. */
export interface SocialLogins {
  /** Returns the `database` option of better-auth. The first call loads the library's adapter. */
  loadAdapter: () => Promise<object>
  /**
   * The key that signs session cookies, shared by all replicas. It is generated if it is missing or cannot be
   * decrypted.
   */
  loadSigningKey: () => Promise<string>
  find: (hash: string) => Promise<SocialIdentity | undefined>
  /** Stores an identity, replacing a former one with this hash. */
  put: (identity: SocialIdentity) => Promise<void>
  remove: (hash: string) => Promise<void>
  /** Finds the identity for which a local account was created. @returns undefined if it was not created for one */
  findCreatingIdentity: (username: string, subject: string) => Promise<SocialIdentity | undefined>
  /**
   * Removes the identities bound to a local account, with their sessions.
   * @param emailOf returns the e-mail address under which better-auth stores the identity with a hash
   */
  removeIdentities: (username: string, subject: string, emailOf: (hash: string) => string) => Promise<void>
  /** Removes the oldest sessions of a user beyond `max`, and at intervals all expired sessions. */
  trimSessions: (userId: string, max: number) => Promise<void>
}
