/** The result of taking a grant. The first caller gets the value; all others learn that it was taken before. */
export type Taken =
  { readonly first: true, readonly family: string, readonly value: unknown } | {
    readonly first: false, readonly family: string
  }

/**
 * Single-use values, such as authorization codes and states of a login. They are stored under the SHA-256 of the secret
 * that was issued; a database stores the value encrypted.
 */
export interface Grants {
  /**
   * @param hash SHA-256, in hex, of at least 128 random bits
   * @param family of all tokens issued for the grant: if the grant is taken a second time, the caller learns the
   *   family, in order to revoke it
   * @param value plain JSON
   */
  put: (hash: string, family: string, value: unknown, expiresAt: number) => Promise<void>
  /**
   * Takes a grant. If several callers, on any replica, take it, exactly one is the first. A taken grant is remembered
   * for an hour.
   * @returns undefined: the grant is unknown, has expired, or was taken longer than an hour ago
   */
  take: (hash: string) => Promise<Taken | undefined>
}
