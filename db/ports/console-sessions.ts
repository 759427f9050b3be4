import { recordCollections, type Records } from '../records.ts'

const { consoleSessions } = recordCollections

/** A session of the console, in which a user is logged in. */
export interface ConsoleSession {
  readonly username: string
  /** An opaque version of the account's password and rights (`rightsMarkOf`): the session ends when it changes. */
  readonly mark: string
}

/** Sessions of the console as records, by the SHA-256 of their cookies in hex. They survive a restart. */
export class ConsoleSessions {
  readonly #records: Records

  constructor (records: Records) {
    this.#records = records
  }

  /** @param idle the time after which the session ends unless it is used, in ms */
  async begin (hash: string, { username, mark }: ConsoleSession, idle: number): Promise<void> {
    const value = { username, mark } satisfies ConsoleSession
    await this.#records.put(consoleSessions, [{ key: hash, value, owner: username, expiresIn: idle }])
  }

  /**
   * Finds a session.
   * @returns undefined if it is unknown or has ended. `age`: the time since its last renewal, in ms
   */
  async find (hash: string): Promise<ConsoleSession & { readonly age: number } | undefined> {
    const found = await this.#records.find(consoleSessions, hash)
    return found && { ...found.value as ConsoleSession, age: found.age }
  }

  /** Restarts the idle time of a session, unless it has ended. @param idle as in `begin` */
  async renew (hash: string, idle: number): Promise<void> {
    const found = await this.#records.find(consoleSessions, hash)
    if (found === undefined) return
    const { value, owner, version } = found
    await this.#records.swap(consoleSessions, version, {
      key: hash, value, ...owner === undefined ? {} : { owner }, expiresIn: idle
    })
  }

  async end (hash: string): Promise<void> {
    await this.#records.remove(consoleSessions, hash)
  }
}
