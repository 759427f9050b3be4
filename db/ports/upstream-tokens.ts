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
