/** A session of the console, in which somebody has signed in. */
export interface ConsoleSession {
  readonly username: string
  /** Of the account and its rights at sign-in: the session ends when they change. */
  readonly mark: string
}

/** Sessions of the console, by the SHA-256 of their cookies in hex. A restart does not end them. */
export interface ConsoleSessions {
  /** @param idle the time until it ends unless it is used, in ms */
  begin: (hash: string, session: ConsoleSession, idle: number) => Promise<void>
  /** Finds a session. @returns undefined: it is unknown or has ended. `age`: since its last renewal, in ms */
  find: (hash: string) => Promise<ConsoleSession & { readonly age: number } | undefined>
  /** Lets the idle time of a session begin anew, unless it has ended meanwhile. */
  renew: (hash: string, idle: number) => Promise<void>
  end: (hash: string) => Promise<void>
  /** Ends all sessions of a user. */
  endAll: (username: string) => Promise<void>
}
