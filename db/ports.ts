// What is kept beside the settings and is no part of them. Every method throws StorageError when the storage cannot be used now; of
// a write it is then not known whether it was made. Times are in ms since 1970.

/** Most that is kept of each kind, where a stranger could make it grow. */
export const most = {
  /** Grants that wait to be taken, and as many that were; beyond: the oldest go. */
  grants: 100_000,
  /** Tokens in a database, and in a settings file, which is written as a whole each time; beyond: the families with the most tokens go. */
  tokens: 1_000_000,
  tokensInFile: 20_000,
  /** Numbers in all embeddings that are kept in memory, four bytes each; beyond: the oldest go. */
  vectorNumbers: 32 * 1024 * 1024
} as const

/** How long it is remembered of what is over (a grant that was taken, a family that was revoked) that it is, in ms. */
export const remembered = 60 * 60_000

/** What taking a grant has found: its value, for the one who came first; that it was taken, for all others. */
export type Taken =
  { readonly first: true; readonly family: string; readonly value: unknown } | { readonly first: false; readonly family: string }

/** What can be taken once: authorization codes, states of a login. Kept under the SHA-256 of what was given out; in a database the value is sealed. */
export interface Grants {
  /**
   * @param hash SHA-256, in hex, of at least 128 random bits
   * @param family what all tokens are called that come of it: whoever takes it a second time is told, and revokes them
   * @param value plain JSON
   */
  put: (hash: string, family: string, value: unknown, expiresAt: number) => Promise<void>
  /** Of all callers on all replicas one is the first. It is remembered for an hour that it was taken. @returns undefined: there is none, it has expired, or is forgotten */
  take: (hash: string) => Promise<Taken | undefined>
}

export type TokenKind = 'access' | 'refresh'

/** Who has let which client in. All tokens that come of it are one family, and end with it. */
export interface Authorization { readonly family: string, readonly clientId: string, readonly username?: string }

/** A token as it is issued. */
export interface Issued {
  /** SHA-256 of the token, in hex. The token itself is kept nowhere. */
  readonly hash: string
  readonly kind: TokenKind
  /** Scopes with spaces between them. */
  readonly scope: string
  /** Whom it is for (RFC 8707). */
  readonly resource?: string
  readonly expiresAt: number
}

/** A token as it is found. */
export type Token = Authorization & Issued

/** One member says which tokens end: that one alone, or all of a family, a client or a user. */
export type Revocation =
  { readonly hash: string } | { readonly family: string } | { readonly clientId: string } | { readonly username: string }

/** Access and refresh tokens of the authorization server. */
export interface Tokens {
  /** Adds tokens to a family; where it was revoked in the last hour, they are of no use. */
  put: (authorization: Authorization, issued: readonly Issued[]) => Promise<void>
  /** @returns undefined: unknown, expired, used or revoked */
  find: (hash: string) => Promise<Token | undefined>
  /**
   * Gives others of the same family for a refresh token, which is used then. Of all callers on all replicas one has swapped; for the
   * others it is reused, and the family is revoked.
   * @returns unknown: there is no such refresh token, or it has expired or was revoked
   */
  swap: (hash: string, issued: readonly Issued[]) => Promise<'swapped' | 'reused' | 'unknown'>
  revoke: (what: Revocation) => Promise<void>
}

export type ActivityStatus = 'success' | 'error'

/** A call that was made. Who records it leaves secrets out, and cuts `input` and `output`, which are text. */
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

/** Which activities: those that are so in all that is given; `from` included, `to` not. */
export interface ActivityFilter extends Partial<Pick<Activity, 'server' | 'tool' | 'status' | 'group' | 'username' | 'keyId'>> {
  readonly from?: number
  readonly to?: number
}

/** What there is to filter by, sorted; at most 1,000 of each. */
export interface ActivityValues {
  readonly servers: readonly string[]
  readonly tools: readonly string[]
  readonly groups: readonly string[]
  readonly usernames: readonly string[]
  readonly keys: ReadonlyArray<{ readonly id: string, readonly name?: string }>
}

/** The record of calls. Only a database keeps one. */
export interface Activities {
  /** Adds a batch. One that is there already, by its id, is not added again: whoever was told of an error may give the batch again. */
  append: (batch: readonly Activity[]) => Promise<void>
  /** Newest first. @param page from 1, of so many @returns `total`: of all pages */
  list: (filter: ActivityFilter, page: number, limit: number) => Promise<{ activities: Activity[], total: number }>
  find: (id: string) => Promise<Activity | undefined>
  values: (filter: ActivityFilter) => Promise<ActivityValues>
  /** How many there are, how many of them failed, and their mean duration in ms; 0 where there are none. */
  stats: (filter: ActivityFilter) => Promise<{ total: number, errors: number, duration: number }>
  /** Removes those from before that time. @returns how many they were */
  cleanup: (before: number) => Promise<number>
}

/** An embedding, and the hash of what was embedded. */
export interface Vector { readonly id: string, readonly hash: string, readonly embedding: readonly number[] }

/** Embeddings, in collections: those of one have been made by one model. */
export interface Vectors {
  /** Adds vectors, or puts them in the place of those of the same ids. @throws RangeError when one has no direction: no numbers, or all zero, or one that is not finite */
  put: (collection: string, vectors: readonly Vector[]) => Promise<void>
  /** The hashes of those that are there: what has another one, or none, must be embedded. */
  hashes: (collection: string, ids: readonly string[]) => Promise<Map<string, string>>
  /** Of those ids the ones that are most like an embedding, best first. Vectors of another length do not count. @returns `score`: the cosine, from -1 to 1 */
  nearest: (
    collection: string,
    embedding: readonly number[],
    ids: readonly string[],
    count: number
  ) => Promise<Array<{ id: string; score: number }>>
  /** Removes all others of the collection. */
  keep: (collection: string, ids: readonly string[]) => Promise<void>
}
