/** A session of the console, in which a user is logged in. */
export interface ConsoleSession {
  readonly username: string
  /** The mark of the account and its rights at the login: the session ends when the mark changes. */
  readonly mark: string
}

/** Sessions of the console, by the SHA-256 of their cookies in hex. They survive a restart. */
export interface ConsoleSessions {
  /** @param idle the time after which the session ends unless it is used, in ms */
  begin: (hash: string, session: ConsoleSession, idle: number) => Promise<void>
  /**
   * Finds a session.
   * @returns undefined if it is unknown or has ended. `age`: the time since its last renewal, in ms
   */
  find: (hash: string) => Promise<ConsoleSession & { readonly age: number } | undefined>
  /** Restarts the idle time of a session, unless it has ended. */
  renew: (hash: string, idle: number) => Promise<void>
  end: (hash: string) => Promise<void>
  /** Ends all sessions of a user. */
  endAll: (username: string) => Promise<void>
}
