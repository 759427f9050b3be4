/** The result of taking a value once. The first caller gets the value; all others are told that it was taken before. */
export type TakeResult =
  { readonly first: true, readonly family: string, readonly value: unknown } | {
    readonly first: false, readonly family: string
  }

/**
 * Values that can be taken once, such as the data of an authorization code or of a login's state. Each is stored under
 * the SHA-256 of the secret that was issued for it; a database stores the value encrypted.
 */
export interface OneTimeValues {
  /**
   * Stores a value.
   * @param hash SHA-256, in hex, of at least 128 random bits
   * @param family the id of all tokens that will be issued for the value: a caller that takes it a second time learns
   *   the family, in order to revoke these tokens
   * @param value plain JSON
   */
  put: (hash: string, family: string, value: unknown, expiresAt: number) => Promise<void>
  /**
   * Takes a value. If several callers, on any replica, take it, exactly one is the first. For an hour it is remembered
   * that the value was taken.
   * @returns undefined if the hash is unknown, or the value has expired or was taken longer than an hour ago
   */
  take: (hash: string) => Promise<TakeResult | undefined>
}
