/** The binding of an identity at a provider to a local account. */
export interface SocialIdentity {
  /** The SHA-256 of provider and subject, in hex. */
  readonly hash: string
  readonly provider: string
  readonly username: string
  /** Identifies the local account, as opposed to a later one of the same name. */
  readonly subject: string
  /** Whether the account was created for this identity. */
  readonly created: boolean
  /** Whether the name was a verified e-mail address when the identity was bound. */
  readonly verified: boolean
}

/** What social login stores. Available with a database only. */
export interface SocialLogins {
  /** The `database` option of better-auth. The library's adapter is loaded by the first call. */
  adapter: () => Promise<object>
  /**
   * The key that signs session cookies, the same on all replicas. It is generated once, and again if it can no longer
   * be decrypted.
   */
  secret: () => Promise<string>
  find: (hash: string) => Promise<SocialIdentity | undefined>
  /** Stores an identity, replacing a former one with this hash. */
  put: (identity: SocialIdentity) => Promise<void>
  remove: (hash: string) => Promise<void>
  /** The identity for which a local account was created. */
  creatorOf: (username: string, subject: string) => Promise<SocialIdentity | undefined>
  /**
   * Removes the identities bound to a local account, with their sessions.
   * @param emailOf returns the e-mail address under which better-auth stores an identity, from its hash
   */
  forget: (username: string, subject: string, emailOf: (hash: string) => string) => Promise<void>
  /** Ends a person's expired sessions, and the oldest ones beyond `max`. */
  trim: (userId: string, max: number) => Promise<void>
}
