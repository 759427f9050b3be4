import {
  clientLabel, recordCollections, userLabel, tombstoneRetention, type RecordEntry, RecordPort
} from '../records.ts'

const { tokens, revokedFamilies } = recordCollections

export type TokenKind = 'access' | 'refresh'

/** An authorization that a user gave to a client. All tokens issued for it form a family, and are revoked together. */
export interface TokenFamily {
  readonly family: string
  readonly clientId: string
  readonly username?: string
  /** An opaque digest of the account's rights and password. Once these change, the tokens are invalid. */
  readonly mark?: string
}

/** A token to store. */
export interface HashedToken {
  /** SHA-256 of the token, in hex. The token itself is never stored. */
  readonly hash: string
  readonly kind: TokenKind
  /** Scopes, separated by spaces. */
  readonly scope: string
  /** The resource that the token is for (RFC 8707). */
  readonly resource?: string
  readonly expiresAt: number
}

export type StoredToken = TokenFamily & HashedToken

/** The tokens to revoke: one token, or all tokens of a family, a client, a user, or a client and a user. */
export type RevocationTarget =
  | { readonly hash: string }
  | { readonly family: string }
  | { readonly clientId: string, readonly username?: undefined }
  // With `mark`, only the tokens that were issued with this mark are revoked.
  | { readonly clientId?: undefined, readonly username: string, readonly mark?: string }
  | { readonly clientId: string, readonly username: string }

/**
 * Stores access and refresh tokens of the authorization server as records, keyed by their hashes. A revocation by
 * client or user ends only the tokens that exist at that time: a caller that stores tokens must check afterwards
 * whether client and user still exist, and revoke the family if not. A revoked family is remembered for an hour; tokens
 * of the family that are stored in that hour are removed at once.
 */
export class OAuthTokens extends RecordPort {
  /** Adds tokens to a family. If the family was revoked within the last hour, they are removed at once. */
  async put (authorization: TokenFamily, issued: readonly HashedToken[]): Promise<void> {
    await this.records.put(tokens, issued.map((token) => toEntry(authorization, token)))
    await this.#removeIfRevoked(authorization.family)
  }

  /** Finds a token. @returns undefined if it is unknown, expired or revoked, or a refresh token that was used */
  async find (hash: string): Promise<StoredToken | undefined> {
    const found = (await this.records.find(tokens, hash))?.value as RecordedToken | undefined
    return found === undefined || found.used === true ? undefined : found
  }

  /** Whether a family has a token that is neither expired nor revoked nor used. */
  async hasTokens (family: string): Promise<boolean> {
    return (await this.records.list(tokens, { labels: [familyLabel(family)] }, true)).length > 0
  }

  /** Lists the ids of the families that any replica has revoked within the last `time` ms (at most an hour). */
  async listRevokedWithin (time: number): Promise<string[]> {
    return (await this.records.list(revokedFamilies, { changedWithin: time }, true)).flatMap(({ owner }) => owner ?? [])
  }

  /**
   * Exchanges a refresh token for new tokens of the same family, and marks the refresh token as used.
   * @param hash the hash of the refresh token
   * @param issued the new tokens
   * @returns `swapped` if the new tokens were stored, for exactly one of several callers on any replica; `reused` if
   *   the token was used before, in which case its family is revoked; `unknown` if there is no such refresh token, or
   *   it has expired or was revoked
   */
  async rotate (hash: string, issued: readonly HashedToken[]): Promise<'swapped' | 'reused' | 'unknown'> {
    const found = await this.records.find(tokens, hash)
    const token = found?.value as RecordedToken | undefined
    if (found === undefined || token?.kind !== 'refresh') return 'unknown'
    const used: RecordEntry = {
      key: hash, value: { ...token, used: true }, owner: token.family, expiresAt: token.expiresAt
    }
    const added = issued.map((each) => toEntry(token, each))
    if (token.used !== true && await this.records.swap(tokens, found.version, used, added)) {
      await this.#removeIfRevoked(token.family)
      return 'swapped'
    }
    // The token was used before, or another caller has used or revoked it in the meantime.
    const now = (await this.records.find(tokens, hash))?.value as RecordedToken | undefined
    if (now?.used !== true) return 'unknown'
    await this.revoke({ family: token.family })
    return 'reused'
  }

  async revoke (target: RevocationTarget): Promise<void> {
    if ('hash' in target) {
      const found = await this.find(target.hash)
      if (found !== undefined) await this.records.remove(tokens, target.hash)
      return
    }
    if ('family' in target) {
      await this.#revokeFamilies([target.family])
      return
    }
    const wanted = labelsOf(target)
    const found = await this.records.list(tokens, { labels: wanted.slice(0, 1) }, true)
    const affected = found.filter(({ labels }) => wanted.every((label) => labels.includes(label)))
    await this.#revokeFamilies([...new Set(affected.flatMap(({ owner }) => owner ?? []))])
  }

  /** Revokes families. Each is recorded as revoked first, so that `put` removes a token that is stored meanwhile. */
  async #revokeFamilies (families: readonly string[]): Promise<void> {
    if (families.length === 0) return
    const revoked = families.map((family) =>
      ({ key: family, value: null, owner: family, expiresIn: tombstoneRetention }))
    await this.records.put(revokedFamilies, revoked)
    await this.records.remove(tokens, { labels: families.map(familyLabel) })
  }

  async #removeIfRevoked (family: string): Promise<void> {
    if (await this.records.find(revokedFamilies, family) === undefined) return
    await this.records.remove(tokens, { labels: [familyLabel(family)] })
  }
}

/**
 * A token as stored. A refresh token that was exchanged is kept as `used`, without labels, so that a revocation of its
 * family does not remove it, and its reuse is detected.
 */
type RecordedToken = StoredToken & { readonly used?: true }

const familyLabel = (family: string): string => `family:${family}`

const labelsOf = ({ clientId, username, mark }: Partial<TokenFamily>): string[] => [
  ...clientId === undefined ? [] : [clientLabel(clientId)],
  ...username === undefined ? [] : [userLabel(username)],
  ...mark === undefined ? [] : [`mark:${mark}`]
]

function toEntry (
  { family, clientId, username, mark }: TokenFamily, { hash, kind, scope, resource, expiresAt }: HashedToken
): RecordEntry {
  const value: StoredToken = {
    hash,
    kind,
    family,
    clientId,
    ...username === undefined ? {} : { username },
    ...mark === undefined ? {} : { mark },
    scope,
    ...resource === undefined ? {} : { resource },
    expiresAt
  }
  return {
    key: hash, value, owner: family, labels: [familyLabel(family), ...labelsOf({ clientId, username, mark })], expiresAt
  }
}
