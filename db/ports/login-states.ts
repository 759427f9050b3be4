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
