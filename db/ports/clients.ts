/**
 * Max number of self-registered clients in a database. Beyond it, clients are removed with their tokens and consents:
 * first the oldest clients that were never used, as long as there are more of them than a quarter of the limit; then
 * the clients whose last use is the longest ago. So mere registrations cannot evict clients that are in use.
 */
export const maxRegisteredClients = 10_000
/** Max number of self-registered clients in a settings file; beyond it, clients are removed as in a database. */
export const maxRegisteredClientsInFile = 1_000

/** How long a self-registered client may stay unused, in ms. Then it is removed with its tokens and consents. */
export const maxClientIdleTime = 90 * 24 * 60 * 60_000
/** Min time between two updates of a client's `lastUsedAt`, in ms. */
export const touchInterval = 60 * 60_000

/** How a client came to exist: an admin created it, or it registered itself (RFC 7591). */
export type ClientOrigin = 'admin' | 'registered'

/** A client of the gateway's OAuth authorization server. Members without a comment are client metadata of RFC 7591. */
export interface OAuthClient {
  /** At most 2,000 bytes. */
  readonly clientId: string
  /** SHA-256 of the secret, in hex; undefined for a public client. The gateway never stores the secret itself. */
  readonly secretHash?: string
  /** SHA-256 of the registration access token (RFC 7592), in hex. */
  readonly registrationTokenHash?: string
  readonly name: string
  readonly redirectUris: readonly string[]
  readonly grantTypes: readonly string[]
  readonly responseTypes?: readonly string[]
  /**
   * Undefined if the client comes from a settings file that does not state the method: its secret is then accepted in
   * the header (`client_secret_basic`) and in the body (`client_secret_post`).
   */
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
  /** In ms since 1970; 0 if the client comes from a settings file that does not state the time. */
  readonly createdAt: number
  /** The time at which a token was last issued to the client, in ms since 1970, accurate to an hour. */
  readonly lastUsedAt?: number
}

/**
 * Whether a self-registered client was unused for `maxClientIdleTime`, since its last use or else its creation. False
 * if both times are unknown.
 */
export const isIdleClient = ({ origin, createdAt, lastUsedAt = createdAt }: OAuthClient): boolean =>
  origin === 'registered' && lastUsedAt !== 0 && lastUsedAt <= Date.now() - maxClientIdleTime

/** Selects a part of a list: skips the first `offset` items, and takes at most `limit` of the others. */
export interface ListRange { readonly offset: number, readonly limit: number }

/**
 * Stores the clients of the authorization server. When a client is removed, by `remove` or because of a limit, its
 * tokens and consents are removed in the same transaction. An edit of the settings file can also add, change and remove
 * clients, but does not remove tokens and consents.
 */
export interface OAuthClients {
  /** Finds a client by its id. @returns undefined if no client has the id, or the client is idle (`isIdleClient`) */
  find: (clientId: string) => Promise<OAuthClient | undefined>
  /** Lists the clients that are not idle, oldest first. @param range the part of the list to return; by default, all */
  list: (range?: ListRange) => Promise<OAuthClient[]>
  count: () => Promise<number>
  /**
   * Adds a client. If several callers, on any replica, add a client with the same id, exactly one succeeds.
   * @returns false if a client has the id already
   */
  create: (client: OAuthClient) => Promise<boolean>
  /**
   * Replaces a client by the result of a function. No other change of the client runs at the same time, on any replica,
   * so no change is lost.
   * @param change computes the new client from the stored one; may be called more than once. If it throws, nothing is
   *   changed, and its error is thrown
   * @returns the changed client; undefined if no client has this id, or the client is idle
   */
  replace: (clientId: string, change: (client: OAuthClient) => OAuthClient) => Promise<OAuthClient | undefined>
  /** Removes a client, its tokens and its consents. @returns whether it existed */
  remove: (clientId: string) => Promise<boolean>
  /**
   * Records that a client was used at the time `at`, in ms since 1970. Writes at most once per `touchInterval`. Never
   * throws.
   */
  touch: (clientId: string, at: number) => Promise<void>
}
