export type TokenKind = 'access' | 'refresh'

/** An authorization of a client by a user. All tokens issued for it form one family, and are revoked together. */
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

export type StoredToken = TokenFamily & IssuedToken

/** The tokens to revoke: one token, or all of a family, a client, a user, or a client of a user. */
export type RevocationTarget =
  | { readonly hash: string }
  | { readonly family: string }
  | { readonly clientId: string, readonly username?: undefined }
  // `mark`: only tokens that were issued with this mark.
  | { readonly clientId?: undefined, readonly username: string, readonly mark?: string }
  | { readonly clientId: string, readonly username: string }

/**
 * Access and refresh tokens of the authorization server. A revocation by client or user covers the tokens that exist at
 * that time: a caller that stores tokens must check afterwards whether client and user still exist, and revoke the
 * family if not.
 */
export interface OAuthTokens {
  /** Adds tokens to a family. If the family was revoked within the last hour, they are invalid. */
  put: (authorization: TokenFamily, issued: readonly IssuedToken[]) => Promise<void>
  /** Finds a valid token. @returns undefined if it is unknown, expired, used or revoked */
  find: (hash: string) => Promise<StoredToken | undefined>
  /** Whether a family has a token that is neither expired nor revoked. */
  hasTokens: (family: string) => Promise<boolean>
  /** Lists the families that were revoked within the last `time`, in ms, on any replica. */
  listRevokedWithin: (time: number) => Promise<string[]>
  /**
   * Exchanges a refresh token for new tokens of the same family, and marks it as used. If several callers, on any
   * replica, exchange it, exactly one succeeds; for the others the token is `reused`, and the family is revoked.
   * @returns `unknown`: there is no such refresh token, or it has expired or was revoked
   */
  rotate: (hash: string, issued: readonly IssuedToken[]) => Promise<'swapped' | 'reused' | 'unknown'>
  revoke: (target: RevocationTarget) => Promise<void>
}
