/** The local account that an identity at a provider enters. */
export interface SocialIdentity {
  /** The SHA-256 of provider and subject, in hex. */
  readonly hash: string
  readonly provider: string
  readonly username: string
  /** Identifies the local account, and no later one of the same name. */
  readonly subject: string
  /** Whether the account was made for this identity. */
  readonly created: boolean
  /** Whether the name was a verified e-mail address when the identity was bound. */
  readonly verified: boolean
}

/** What social login stores. Available with a database only. */
export interface SocialLogins {
  /** The `database` option of better-auth. Its library is loaded by the first call. */
  adapter: () => Promise<object>
  /**
   * The key that signs session cookies, the same on all replicas: made once, and again when it cannot be opened any
   * more.
   */
  secret: () => Promise<string>
  find: (hash: string) => Promise<SocialIdentity | undefined>
  /** Stores an identity in place of the former one with this hash. */
  put: (identity: SocialIdentity) => Promise<void>
  remove: (hash: string) => Promise<void>
  /** The identity that a local account was made for. */
  creatorOf: (username: string, subject: string) => Promise<SocialIdentity | undefined>
  /**
   * Removes the identities that entered a local account, with their sessions.
   * @param emailOf the e-mail address at better-auth of an identity, by its hash
   */
  forget: (username: string, subject: string, emailOf: (hash: string) => string) => Promise<void>
  /** Ends the oldest sessions of a person, beyond a number, and those that have expired. */
  trim: (userId: string, max: number) => Promise<void>
}
