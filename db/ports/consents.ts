/** A user's consent to what a client may do, remembered so that the user is not asked again. */
export interface Consent {
  readonly username: string
  readonly clientId: string
  /** Scopes, separated by spaces. */
  readonly scope: string
  /** The resource that the consent is for (RFC 8707). */
  readonly resource?: string
  /** An opaque version of the account's rights and password. If it differs later, the consent is void. */
  readonly mark?: string
  readonly grantedAt: number
}

/**
 * Remembered consents, one per user and client. They are removed with their client (`Clients.remove`). When a user is
 * removed, the caller must remove the user's consents, login sessions and tokens, since users are part of the settings,
 * which are not in the transactions of a port. The caller does the same when a user is created, since the removal of a
 * former user of that name may have been interrupted.
 */
export interface Consents {
  /** Stores a consent in place of the former one of this user to this client. */
  put: (consent: Consent) => Promise<void>
  find: (username: string, clientId: string) => Promise<Consent | undefined>
  /** Lists the consents of a user, newest first. */
  list: (username: string) => Promise<Consent[]>
  /** Removes a consent. @returns whether it existed */
  remove: (username: string, clientId: string) => Promise<boolean>
  /** Removes all consents of a user, or to a client. */
  removeAll: (target: { readonly username: string } | { readonly clientId: string }) => Promise<void>
}
