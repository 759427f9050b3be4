/** A stored login at an upstream server. Each change gives it another `version`. */
export interface StoredUpstreamLogin { readonly version: string, readonly value: unknown }
/** A change of a login at an upstream server. `version` is undefined if the login was removed. */
export interface UpstreamLoginChange {
  readonly server: string, readonly holder: string, readonly version: string | undefined
}

/**
 * Tokens and client registrations of the gateway at the authorization servers of upstream servers. Values are plain
 * JSON, and stored encrypted. Each belongs to one holder at one server; the caller chooses the names of holders.
 */
export interface UpstreamTokens {
  find: (server: string, holder: string) => Promise<StoredUpstreamLogin | undefined>
  /**
   * Stores a value if the stored one still has that version. If several callers, on any replica, name the same version,
   * exactly one succeeds.
   * @param replaces the version that the new value replaces; `any` replaces every version; undefined replaces none, or
   *   only a value that cannot be decrypted
   * @returns the new version; undefined if another value was stored meanwhile
   */
  swap: (
    server: string,
    holder: string,
    replaces: { readonly version: string } | 'any' | undefined,
    value: unknown
  ) => Promise<string | undefined>
  /**
   * Claims the right to replace a version. Exactly one caller, on any replica, gets it, until the value changes or a
   * time in ms has passed.
   * @returns false if another caller has the claim, or another value was stored meanwhile
   */
  claim: (server: string, holder: string, version: string, time: number) => Promise<boolean>
  /** Removes a value. @returns whether it existed */
  remove: (server: string, holder: string) => Promise<boolean>
  /** Removes all values of a server, or of a holder. */
  removeAll: (target: { readonly server: string } | { readonly holder: string }) => Promise<void>
  /** Lists what was stored or removed within the last `time`, in ms (at most an hour), on any replica. */
  listChangedWithin: (time: number) => Promise<UpstreamLoginChange[]>
}
