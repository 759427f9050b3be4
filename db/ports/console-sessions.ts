import { recordCollections, RecordPort } from '../records.ts'

const { consoleSessions } = recordCollections

/** A login of a user at the web console. */
export interface ConsoleSession {
  readonly username: string
  /** An opaque digest of the account's password and rights (`rightsMarkOf`). The session ends when these change. */
  readonly mark: string
}

/**
 * Stores the sessions of the console as records, keyed by the SHA-256 of the cookie, in hex. They survive a restart.
 */
export class ConsoleSessions extends RecordPort {
  /**
   * Stores a new session.
   * @param hash SHA-256 of its cookie
   * @param idle the time until it ends, unless renewed, in ms
   */
  async begin (hash: string, { username, mark }: ConsoleSession, idle: number): Promise<void> {
    const value = { username, mark } satisfies ConsoleSession
    await this.records.put(consoleSessions, [{ key: hash, value, owner: username, expiresIn: idle }])
  }

  /**
   * Finds a session.
   * @returns the session, and the time since its beginning or last renewal as `age`, in ms; undefined if the session is
   *   unknown or has ended
   */
  async find (hash: string): Promise<ConsoleSession & { readonly age: number } | undefined> {
    const found = await this.records.find(consoleSessions, hash)
    return found && { ...found.value as ConsoleSession, age: found.age }
  }

  /** Renews a session, unless it has ended. @param idle the time until it ends, unless renewed again, in ms */
  async renew (hash: string, idle: number): Promise<void> {
    const found = await this.records.find(consoleSessions, hash)
    if (found === undefined) return
    const { value, owner, version } = found
    await this.records.swap(consoleSessions, version, {
      key: hash, value, ...owner === undefined ? {} : { owner }, expiresIn: idle
    })
  }

  async end (hash: string): Promise<void> {
    await this.records.remove(consoleSessions, hash)
  }
}
