// The ports for data that is no part of the settings. Every method throws StorageError when the storage cannot be used now; whether a write
// was made is then unknown. Times are in ms since 1970.

/** Max entries of each kind of data that unauthenticated clients can make grow. */
export const maxEntries = {
  /** Grants that wait to be taken, and as many that were taken; beyond, the oldest are removed. */
  grants: 100_000,
  /** Tokens in a database; beyond, the families with the most tokens are removed. */
  tokens: 1_000_000,
  /** Tokens in a settings file, which each change writes as a whole. */
  tokensInFile: 20_000,
  /** Numbers of all embeddings in memory, four bytes each; beyond, the oldest embeddings are removed. */
  vectorNumbers: 32 * 1024 * 1024
} as const

/** How long a taken grant and a revoked family are remembered, in ms. */
export const retention = 60 * 60_000

/** The result of taking a grant. The first caller gets the value; all others learn that it was taken. */
export type Taken =
  { readonly first: true, readonly family: string, readonly value: unknown } | { readonly first: false, readonly family: string }

/**
 * Values that can be taken once, such as authorization codes and states of a login. They are stored under the SHA-256 of the secret that
 * was issued; a database stores the value sealed.
 */
export interface Grants {
  /**
   * @param hash SHA-256, in hex, of at least 128 random bits
   * @param family of all tokens issued for the grant: if it is taken a second time, the caller learns the family and revokes them
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
export interface Authorization { readonly family: string, readonly clientId: string, readonly username?: string }

/** A token to be stored. */
export interface Issued {
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
export type Token = Authorization & Issued

/** The tokens to revoke: one token, or all of a family, a client or a user. */
export type Revocation =
  { readonly hash: string } | { readonly family: string } | { readonly clientId: string } | { readonly username: string }

/** Access and refresh tokens of the authorization server. */
export interface Tokens {
  /** Adds tokens to a family. If the family was revoked within the last hour, they are invalid. */
  put: (authorization: Authorization, issued: readonly Issued[]) => Promise<void>
  /** Finds a valid token. @returns undefined: it is unknown, expired, used or revoked */
  find: (hash: string) => Promise<Token | undefined>
  /**
   * Exchanges a refresh token for new tokens of the same family, and marks it as used. Of all callers on all replicas, one succeeds; for
   * the others the token is `reused`, and the family is revoked.
   * @returns `unknown`: there is no such refresh token, or it has expired or was revoked
   */
  swap: (hash: string, issued: readonly Issued[]) => Promise<'swapped' | 'reused' | 'unknown'>
  revoke: (target: Revocation) => Promise<void>
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
}

/** A filter for activities, which must match all given members; `from` is inclusive, `to` exclusive. */
export interface ActivityFilter extends Partial<Pick<Activity, 'server' | 'tool' | 'status' | 'group' | 'username' | 'keyId'>> {
  readonly from?: number
  readonly to?: number
}

/** The values to filter by, sorted; at most 1,000 of each. */
export interface ActivityValues {
  readonly servers: readonly string[]
  readonly tools: readonly string[]
  readonly groups: readonly string[]
  readonly usernames: readonly string[]
  readonly keys: ReadonlyArray<{ readonly id: string, readonly name?: string }>
}

/** The record of calls. Available with a database only. */
export interface Activities {
  /** Adds a batch. Activities that exist already, by id, are skipped: after an error the same batch may be added again. */
  append: (batch: readonly Activity[]) => Promise<void>
  /** Lists a page, newest first. @param page from 1 @param limit entries per page @returns `total`: entries on all pages */
  list: (filter: ActivityFilter, page: number, limit: number) => Promise<{ activities: Activity[], total: number }>
  find: (id: string) => Promise<Activity | undefined>
  values: (filter: ActivityFilter) => Promise<ActivityValues>
  /** The number of calls and of failed calls, and the mean duration in ms; 0 if there are none. */
  stats: (filter: ActivityFilter) => Promise<{ total: number, errors: number, duration: number }>
  /** Removes the activities before a time. @returns the number of removed ones */
  cleanup: (before: number) => Promise<number>
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
   * Finds the vectors among `ids` that are most similar to an embedding, best first. Vectors of another length are ignored.
   * @returns `score`: the cosine, from -1 to 1
   */
  nearest: (
    collection: string,
    embedding: readonly number[],
    ids: readonly string[],
    count: number
  ) => Promise<Array<{ id: string, score: number }>>
  /** Removes all vectors of the collection except those with these ids. */
  keep: (collection: string, ids: readonly string[]) => Promise<void>
}
