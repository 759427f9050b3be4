/**
 * The state of a browser at the authorization server: a login session, or an interaction, which is an authorization
 * request that waits for its user. `upstream-login`: the start of a login at an upstream server. `user-values`: a page
 * on which a user provides values for a server.
 */
export interface LoginState {
  readonly kind: 'session' | 'interaction' | 'upstream-login' | 'user-values'
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
  /** Finds a state. @returns undefined if it is unknown or has expired */
  find: (hash: string) => Promise<LoginState | undefined>
  findByUid: (uid: string) => Promise<LoginState | undefined>
  remove: (hash: string) => Promise<void>
  /** Removes all states of a user. */
  removeAll: (username: string) => Promise<void>
}

/**
 * The first use of a `requestState`. `answers`: SHA-256 of the answers sent with it, in hex; `age`: time since then, in
 * ms.
 */
export interface RequestStateUse { readonly answers: string, readonly age: number }

/** The states (`requestState`, MCP 2026-07-28) that clients have returned, by their SHA-256 in hex. */
export interface UsedRequestStates {
  /** Whether used states are remembered across a restart. If not, states must not outlive the process. */
  readonly outlivesProcess: boolean
  /**
   * Records the use of a state. If several callers, on any replica, use it, exactly one is the first.
   * @param expiresAt when the state itself expires: its use is remembered until then
   * @returns the first use of the state: this one, if the state was not used before
   */
  recordUse: (hash: string, answers: string, expiresAt: number) => Promise<RequestStateUse>
}
