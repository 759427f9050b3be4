/**
 * The state of a browser at the authorization server: a login session, or an interaction, which is an authorization
 * request that waits for its user. `upstream-login`: the start of a login at an upstream server.
 */
export interface LoginState {
  readonly kind: 'session' | 'interaction' | 'upstream-login'
  /** An identifier of the state that is not a credential. */
  readonly uid?: string
  readonly username?: string
  /** Plain JSON. A database stores it encrypted. */
  readonly value: unknown
  readonly createdAt: number
}

/** Browser states, by the SHA-256 of their cookies in hex. Without a database, they are lost at a restart. */
export interface LoginStates {
  put: (hash: string, state: LoginState, expiresAt: number) => Promise<void>
  /** Finds a state. @returns undefined: it is unknown or has expired */
  find: (hash: string) => Promise<LoginState | undefined>
  findByUid: (uid: string) => Promise<LoginState | undefined>
  remove: (hash: string) => Promise<void>
  /** Removes all states of a user. */
  removeAll: (username: string) => Promise<void>
}

/** The first use of a state: the SHA-256 of its answers, in hex, and how long ago it was, in ms. */
export interface StateUse { readonly answers: string, readonly age: number }

/** The states (`requestState`, MCP 2026-07-28) that clients have returned, by their SHA-256 in hex. */
export interface UsedStates {
  /** False: used states are forgotten at a restart, so no state may be valid beyond the life of the process. */
  readonly outlivesProcess: boolean
  /**
   * Uses a state. If several callers, on any replica, use it, exactly one is the first.
   * @param expiresAt when the state itself expires: its use is remembered until then
   * @returns its first use, which is this one if it was not used before
   */
  use: (hash: string, answers: string, expiresAt: number) => Promise<StateUse>
}
