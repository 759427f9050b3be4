/**
 * Clients in a database that registered themselves; beyond, one is removed with its tokens and consents: the oldest of
 * those that were never used, if they are more than a quarter, else the one that was unused longest. So registrations
 * alone push out no client in use.
 */
export const maxRegisteredClients = 10_000
/** The same in a settings file. */
export const maxRegisteredClientsInFile = 1_000

/**
 * How long a client that registered itself may be unused, in ms; beyond, it is removed, with its tokens and consents.
 */
export const maxClientIdle = 90 * 24 * 60 * 60_000
/** Min time between two writes of when a client was last used, in ms. */
export const touchInterval = 60 * 60_000

/** Whether an admin created a client, or it registered itself (RFC 7591). */
export type ClientOrigin = 'admin' | 'registered'

/** A client of the authorization server. Members without a comment are those of RFC 7591. */
export interface OAuthClient {
  /** At most 2,000 bytes. */
  readonly clientId: string
  /** SHA-256 of the secret, in hex; undefined: a public client. The secret itself is never stored. */
  readonly secretHash?: string
  /** SHA-256 of the registration access token (RFC 7592), in hex. */
  readonly registrationTokenHash?: string
  readonly name: string
  readonly redirectUris: readonly string[]
  readonly grantTypes: readonly string[]
  readonly responseTypes?: readonly string[]
  /** undefined: an entry of a settings file does not say. A secret may then be sent in either way. */
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
  /** 0: an entry of a settings file does not say. */
  readonly createdAt: number
  /** Exact to an hour. */
  readonly lastUsedAt?: number
}

/** Whether a client registered itself and was unused for too long. One of unknown age is not. */
export const isIdle = ({ origin, createdAt, lastUsedAt = createdAt }: OAuthClient): boolean =>
  origin === 'registered' && lastUsedAt !== 0 && lastUsedAt <= Date.now() - maxClientIdle

/** A part of a list. */
export interface Range { readonly offset: number, readonly limit: number }

/**
 * Clients of the authorization server. A client that is removed, by `remove` or by a bound, takes its tokens and
 * consents with it, in the same transaction. An edit of the settings file adds, changes and removes clients as well,
 * and leaves their tokens and consents.
 */
export interface Clients {
  /** Finds a client. @returns undefined: it is unknown, or registered itself and was unused for too long */
  find: (clientId: string) => Promise<OAuthClient | undefined>
  /** Lists clients, oldest first: all, or a range of them, of which no others are read. */
  list: (range?: Range) => Promise<OAuthClient[]>
  count: () => Promise<number>
  /** Adds a client. Of all callers on all replicas that add the same id, one succeeds. @returns false: the id exists */
  create: (client: OAuthClient) => Promise<boolean>
  /**
   * Replaces a client by what a function makes of it. Nobody else changes the client meanwhile, on any replica, so no
   * change is lost.
   * @param change is synchronous, and may be called more than once; when it throws, nothing is changed, and its error
   *   is thrown
   * @returns the new client; undefined: there is none with this id
   */
  replace: (clientId: string, change: (client: OAuthClient) => OAuthClient) => Promise<OAuthClient | undefined>
  /** Removes a client, its tokens and its consents. @returns whether it existed */
  remove: (clientId: string) => Promise<boolean>
  /** Records that a client was used at a time; it is written at most once an hour. Never throws. */
  touch: (clientId: string, at: number) => Promise<void>
}
