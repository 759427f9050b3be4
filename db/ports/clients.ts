/**
 * Max self-registered clients in a database; beyond that, clients are removed with their tokens and consents. If more
 * than a quarter of the limit were never used, the oldest of these are removed first, otherwise the clients that were
 * unused longest: registrations alone cannot evict clients in use.
 */
export const maxRegisteredClients = 10_000
/** Max self-registered clients in a settings file; beyond that, clients are removed as in a database. */
export const maxRegisteredClientsInFile = 1_000

/** How long a self-registered client may be unused, in ms; after that it is removed, with its tokens and consents. */
export const maxClientIdleTime = 90 * 24 * 60 * 60_000
/** Min time between two updates of a client's last-use time, in ms. */
export const touchInterval = 60 * 60_000

/** Whether an admin created a client, or it registered itself (RFC 7591). */
export type ClientOrigin = 'admin' | 'registered'

/** A client of the authorization server. Members without a comment are those of RFC 7591. */
export interface OAuthClient {
  /** At most 2,000 bytes. */
  readonly clientId: string
  /** SHA-256 of the secret, in hex; undefined for a public client. The secret itself is never stored. */
  readonly secretHash?: string
  /** SHA-256 of the registration access token (RFC 7592), in hex. */
  readonly registrationTokenHash?: string
  readonly name: string
  readonly redirectUris: readonly string[]
  readonly grantTypes: readonly string[]
  readonly responseTypes?: readonly string[]
  /** Undefined for a client from a settings file that does not state it: its secret is accepted by either method. */
  readonly tokenEndpointAuthMethod?: string
  /** The scopes that the client may be granted, separated by spaces. */
  readonly scope: string
  readonly clientUri?: string
  readonly logoUri?: string
  readonly policyUri?: string
  readonly tosUri?: string
  readonly contacts?: readonly string[]
  readonly softwareId?: string
  readonly softwareVersion?: string
  readonly applicationType?: string
  readonly origin: ClientOrigin
  /** In ms since 1970; 0 for a client from a settings file that does not state it. */
  readonly createdAt: number
  /** The time at which a token was last issued to the client, in ms since 1970, accurate to an hour. */
  readonly lastUsedAt?: number
}

/** Whether a self-registered client was unused for `maxClientIdleTime`. Never true for a client of unknown age. */
export const isIdleClient = ({ origin, createdAt, lastUsedAt = createdAt }: OAuthClient): boolean =>
  origin === 'registered' && lastUsedAt !== 0 && lastUsedAt <= Date.now() - maxClientIdleTime

/** A range of a list: at most `limit` items, after the first `offset` ones. */
export interface ListRange { readonly offset: number, readonly limit: number }

/**
 * Clients of the authorization server. When a client is removed, by `remove` or by a limit, its tokens and consents are
 * removed in the same transaction. An edit of the settings file can also add, change and remove clients; it leaves
 * their tokens and consents.
 */
export interface OAuthClients {
  /** Finds a client. @returns undefined if it is unknown or idle (`isIdleClient`) */
  find: (clientId: string) => Promise<OAuthClient | undefined>
  /** Lists clients, oldest first: all of them, or a range, in which case no others are read. */
  list: (range?: ListRange) => Promise<OAuthClient[]>
  count: () => Promise<number>
  /**
   * Adds a client. If several callers, on any replica, add the same id, one succeeds.
   * @returns false if the id exists
   */
  create: (client: OAuthClient) => Promise<boolean>
  /**
   * Replaces a client by the result of a function. No other change of the client runs at the same time, on any replica,
   * so no change is lost.
   * @param change is synchronous, and may be called more than once; if it throws, nothing is changed, and its error is
   *   thrown
   * @returns the changed client; undefined if no client has this id
   */
  replace: (clientId: string, change: (client: OAuthClient) => OAuthClient) => Promise<OAuthClient | undefined>
  /** Removes a client, its tokens and its consents. @returns whether it existed */
  remove: (clientId: string) => Promise<boolean>
  /** Records that a client was used at a time; written at most once an hour. Never throws. */
  touch: (clientId: string, at: number) => Promise<void>
}
