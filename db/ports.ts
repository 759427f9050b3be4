// The ports for data that is no part of the settings. Every method throws StorageError when the storage cannot be used
// now; whether a write was made is then unknown. Times are in ms since 1970.

/** The bounds of data that is not in collections of records. */
export const maxRecords = {
  /**
   * Clients in a database that registered themselves; beyond, one is removed with its tokens and consents: the oldest
   * of those that were never used, if they are more than a quarter, else the one that was unused longest. So
   * registrations alone push out no client in use.
   */
  registeredClients: 10_000,
  /** The same in a settings file. */
  registeredClientsInFile: 1_000,
  /** Numbers of all embeddings in memory, four bytes each; beyond, the oldest embeddings are removed. */
  vectorNumbers: 32 * 1024 * 1024
} as const

/**
 * How long a client that registered itself may be unused, in ms; beyond, it is removed, with its tokens and consents.
 */
export const maxClientIdle = 90 * 24 * 60 * 60_000
/** Min time between two writes of when a client was last used, in ms. */
export const touchInterval = 60 * 60_000

/** The result of taking a grant. The first caller gets the value; all others learn that it was taken. */
export type Taken =
  { readonly first: true, readonly family: string, readonly value: unknown } | {
    readonly first: false, readonly family: string
  }

/**
 * Values that can be taken once, such as authorization codes and states of a login. They are stored under the SHA-256
 * of the secret that was issued; a database stores the value sealed.
 */
export interface Grants {
  /**
   * @param hash SHA-256, in hex, of at least 128 random bits
   * @param family of all tokens issued for the grant: if it is taken a second time, the caller learns the family and
   *   revokes them
   * @param value plain JSON
   */
  put: (hash: string, family: string, value: unknown, expiresAt: number) => Promise<void>
  /**
   * Takes a grant. Of all callers on all replicas, exactly one is the first. A taken grant is remembered for an hour.
   * @returns undefined: the grant is unknown, has expired, or was taken longer ago
   */
  take: (hash: string) => Promise<Taken | undefined>
}

export type TokenKind = 'access' | 'refresh'

/** An authorization of a client by a user. All tokens issued for it are one family, and are revoked together. */
export interface TokenFamily {
  readonly family: string
  readonly clientId: string
  readonly username?: string
  /** An opaque version of the account. If the account's version differs later, the token is invalid. */
  readonly mark?: string
}

/** A token to be stored. */
export interface IssuedToken {
  /** SHA-256 of the token, in hex. The token itself is never stored. */
  readonly hash: string
  readonly kind: TokenKind
  /** Scopes, separated by spaces. */
  readonly scope: string
  /** The resource that the token is for (RFC 8707). */
  readonly resource?: string
  readonly expiresAt: number
}

/** A stored token. */
export type StoredToken = TokenFamily & IssuedToken

/** The tokens to revoke: one token, or all of a family, a client, a user, or a client of a user. */
export type Revocation =
  | { readonly hash: string }
  | { readonly family: string }
  | { readonly clientId: string, readonly username?: undefined }
  // `mark`: only those that were issued with it.
  | { readonly clientId?: undefined, readonly username: string, readonly mark?: string }
  | { readonly clientId: string, readonly username: string }

/**
 * Access and refresh tokens of the authorization server. A revocation by client or user is for the tokens that exist
 * then: a caller that puts tokens checks afterwards whether client and user are still there, and revokes the family if
 * not.
 */
export interface Tokens {
  /** Adds tokens to a family. If the family was revoked within the last hour, they are invalid. */
  put: (authorization: TokenFamily, issued: readonly IssuedToken[]) => Promise<void>
  /** Finds a valid token. @returns undefined: it is unknown, expired, used or revoked */
  find: (hash: string) => Promise<StoredToken | undefined>
  /** Lists the families that were revoked within the last `time`, in ms, on any replica. */
  revokedWithin: (time: number) => Promise<string[]>
  /**
   * Exchanges a refresh token for new tokens of the same family, and marks it as used. Of all callers on all replicas,
   * one succeeds; for the others the token is `reused`, and the family is revoked.
   * @returns `unknown`: there is no such refresh token, or it has expired or was revoked
   */
  swap: (hash: string, issued: readonly IssuedToken[]) => Promise<'swapped' | 'reused' | 'unknown'>
  revoke: (target: Revocation) => Promise<void>
}

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
 * Remembered consents, one per user and client. They go with their client (`Clients.remove`). When a user is removed,
 * the caller removes the user's consents, login sessions and tokens: the user is a part of the settings, which no
 * transaction of a port includes. It does the same when a user is created, for a removal of a former user of that name
 * may have been interrupted.
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

/**
 * The state of a browser at the authorization server: a session in which somebody may have logged in, or an
 * interaction, which is an authorization request that waits for its user. `upstream-login`: the beginning of a login at
 * an upstream server.
 */
export interface LoginState {
  readonly kind: 'session' | 'interaction' | 'upstream-login'
  /** A name of the state that is no credential. */
  readonly uid?: string
  readonly username?: string
  /** Plain JSON. A database stores it sealed. */
  readonly value: unknown
  readonly createdAt: number
}

/** States of browsers, by the SHA-256 of their cookies in hex. Without a database, a restart ends them. */
export interface LoginStates {
  put: (hash: string, state: LoginState, expiresAt: number) => Promise<void>
  /** Finds a state. @returns undefined: it is unknown or has expired */
  find: (hash: string) => Promise<LoginState | undefined>
  findByUid: (uid: string) => Promise<LoginState | undefined>
  remove: (hash: string) => Promise<void>
  /** Removes all states of a user. */
  removeAll: (username: string) => Promise<void>
}

/** A session of the console, in which somebody has signed in. */
export interface ConsoleSession {
  readonly username: string
  /** Of the account and its rights at sign-in: the session ends when they change. */
  readonly mark: string
}

/** Sessions of the console, by the SHA-256 of their cookies in hex. A restart does not end them. */
export interface ConsoleSessions {
  /** @param idle the time until it ends unless it is used, in ms */
  begin: (hash: string, session: ConsoleSession, idle: number) => Promise<void>
  /** Finds a session. @returns undefined: it is unknown or has ended. `age`: since its last renewal, in ms */
  find: (hash: string) => Promise<ConsoleSession & { readonly age: number } | undefined>
  /** Lets the idle time of a session begin anew, unless it has ended meanwhile. */
  renew: (hash: string, idle: number) => Promise<void>
  end: (hash: string) => Promise<void>
  /** Ends all sessions of a user. */
  endAll: (username: string) => Promise<void>
}

/** How a state was used first: with which answers (their SHA-256 in hex), and how long ago, in ms. */
export interface StateUse { readonly answers: string, readonly age: number }

/**
 * The states (`requestState`, MCP 2026-07-28) that clients came back with, by their SHA-256 in hex.
 */
export interface UsedStates {
  /** False: a restart forgets them, so no state may outlive the process. */
  readonly outlivesProcess: boolean
  /**
   * Uses a state. Of all callers on all replicas, exactly one is the first.
   * @param expiresAt when the state itself expires: until then its use is remembered
   * @returns its first use, which is this one if it was not used before
   */
  use: (hash: string, answers: string, expiresAt: number) => Promise<StateUse>
}

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

/** A value of `UpstreamTokens`. `version` is another one after each change. */
export interface StoredLogin { readonly version: string, readonly value: unknown }
/** A change of `UpstreamTokens`. `version` undefined: the value was removed. */
export interface LoginChange { readonly server: string, readonly holder: string, readonly version: string | undefined }

/**
 * Tokens and client registrations of the gateway at the authorization servers of upstream servers. Values
 * are plain JSON, and stored sealed. Each is one holder's at one server; the caller chooses the names of holders.
 */
export interface UpstreamTokens {
  find: (server: string, holder: string) => Promise<StoredLogin | undefined>
  /**
   * Stores a value if the stored one is still that version. Of all callers on all replicas that name the same version,
   * one succeeds.
   * @param replaces undefined: nothing is stored, or a value that cannot be opened; `any`: whatever is stored
   * @returns the new version; undefined: another value is stored meanwhile
   */
  swap: (
    server: string,
    holder: string,
    replaces: { readonly version: string } | 'any' | undefined,
    value: unknown
  ) => Promise<string | undefined>
  /**
   * Claims the right to replace a version. Of all callers on all replicas one has it, until the value changes, or for a
   * time in ms.
   * @returns false: somebody else has it, or another value is stored meanwhile
   */
  claim: (server: string, holder: string, version: string, time: number) => Promise<boolean>
  /** Removes a value. @returns whether it existed */
  remove: (server: string, holder: string) => Promise<boolean>
  /** Removes all values of a server, or of a holder. */
  removeAll: (target: { readonly server: string } | { readonly holder: string }) => Promise<void>
  /** Lists what was stored or removed within the last `time`, in ms, on any replica; at most an hour. */
  changedWithin: (time: number) => Promise<LoginChange[]>
}

export type ActivityStatus = 'success' | 'error'

/** The record of a call. The caller removes secrets, and truncates `input` and `output`, which are text. */
export interface Activity {
  /** A UUID. */
  readonly id: string
  readonly timestamp: number
  readonly server: string
  readonly tool: string
  /** In ms. */
  readonly duration: number
  readonly status: ActivityStatus
  readonly input?: string
  readonly output?: string
  readonly group?: string
  readonly username?: string
  readonly keyId?: string
  readonly keyName?: string
  readonly sourceIp?: string
  readonly errorMessage?: string
  /** The OAuth client whose access token the call came with. */
  readonly clientId?: string
  /** Its name at that time; the storage adds it where it knows the client. */
  readonly clientName?: string
  /** The input, the output and the message of an error are sealed with a key that is not available. */
  readonly locked?: true
}

/** A filter for activities, which must match all given members; `from` is inclusive, `to` exclusive. */
export interface ActivityFilter
  extends Partial<Pick<Activity, 'server' | 'tool' | 'status' | 'group' | 'username' | 'keyId' | 'keyName'>> {
  readonly from?: number
  readonly to?: number
}

/** The values to filter by, sorted; at most 1,000 of each. */
export interface ActivityValues {
  readonly servers: readonly string[]
  readonly tools: readonly string[]
  readonly groups: readonly string[]
  readonly usernames: readonly string[]
  readonly keyNames: readonly string[]
}

/** One page of activities, newest first. `total`: entries on all pages; `approximate`: it is an estimate. */
export interface ActivityPage { readonly activities: Activity[], readonly total: number, readonly approximate: boolean }

/** The record of calls. Available with a database only. */
export interface Activities {
  /**
   * Adds a batch. Activities that exist already, by id, are skipped: after an error the same batch may be added again.
   */
  append: (batch: readonly Activity[]) => Promise<void>
  /**
   * Lists a page. `total` is exact to 10,000, and an estimate beyond. A page holds payloads (`input` and `output`) up
   * to 8 MiB; activities further down on it come without theirs, which `find` has.
   * @param page from 1 @param limit entries per page
   */
  list: (filter: ActivityFilter, page: number, limit: number) => Promise<ActivityPage>
  find: (id: string) => Promise<Activity | undefined>
  /** The values that occur. `from` and `to` count to the hour. */
  values: (filter: ActivityFilter) => Promise<ActivityValues>
  /** The number of calls and of failed calls, and the mean duration in ms; 0 if there are none. */
  stats: (filter: ActivityFilter) => Promise<{ total: number, errors: number, duration: number }>
  /** Removes the activities before a time, in small steps. @returns the number of removed ones */
  cleanup: (before: number) => Promise<number>
  /**
   * Removes some of the activities before a time.
   * @returns their number; 0 also when another replica removes some at this moment
   */
  expire: (before: number) => Promise<number>
}

/** An embedding, and the hash of the embedded text. */
export interface Vector { readonly id: string, readonly hash: string, readonly embedding: readonly number[] }

/** Embeddings in collections. All embeddings of a collection were made by the same model. */
export interface Vectors {
  /**
   * Adds vectors, or replaces those with the same ids.
   * @throws RangeError when a vector has no direction: it is empty, all zero, or holds a number that is not finite
   */
  put: (collection: string, vectors: readonly Vector[]) => Promise<void>
  /** The hashes of the stored vectors. A text whose hash differs or is missing must be embedded again. */
  hashes: (collection: string, ids: readonly string[]) => Promise<Map<string, string>>
  /**
   * Finds the vectors among `ids` that are most similar to an embedding, best first. Vectors of another length are
   * ignored.
   * @returns `score`: the cosine, from -1 to 1
   */
  nearest: (
    collection: string,
    embedding: readonly number[],
    ids: readonly string[],
    count: number
  ) => Promise<Array<{ id: string, score: number }>>
  /** Marks vectors as in use now, as `put` does. */
  use: (collection: string, ids: readonly string[]) => Promise<void>
  /**
   * Removes vectors of all collections that nobody has put or marked as in use for `age` ms.
   * @param count the most that are removed
   * @returns how many were
   */
  removeUnused: (age: number, count: number) => Promise<number>
}

/** Embeddings in a database of their own. `close` never throws. */
export interface OpenedVectors { readonly vectors: Vectors, readonly close: () => Promise<void> }
