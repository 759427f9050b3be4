import { randomBytes } from 'node:crypto'
import type { ConsoleSession, ConsoleSessions } from '../../../db/ports/console-sessions.ts'
import type { Snapshot } from '../../../db/store.ts'
import type { User } from '../../../schemas/settings.ts'
import { errors } from '../../base/errors/index.ts'
import { sha256 } from '../../base/secrets/index.ts'
import { principalOfUser, rightsMarkOf } from '../../identity/index.ts'
import type { Principal, Settings } from '../../settings/index.ts'
import { managementLimits } from '../limits.ts'

/** The session of a user who has signed in. */
export interface SignedInSession {
  readonly principal: Principal
  /** Identifies the session; it is not a credential. */
  readonly id: string
}

/**
 * The sessions of the console. The cookie contains a random token, whose hash is stored. A session ends at once when
 * the user is deleted, or the password or the rights of the account change.
 */
export class SignedInSessions {
  readonly #stored: ConsoleSessions
  readonly #settings: Settings
  readonly #warn: (about: object, sentence: string) => void

  constructor (stored: ConsoleSessions, settings: Settings, warn: (about: object, sentence: string) => void) {
    this.#stored = stored
    this.#settings = settings
    this.#warn = warn
  }

  /** Begins a session. @returns its token, for the cookie @throws StorageError */
  async begin (user: User): Promise<string> {
    const token = randomBytes(32).toString('base64url')
    const { username } = user
    await this.#stored.begin(
      sha256(token), { username, mark: rightsMarkOf(user) }, managementLimits.console.sessionIdleTimeout
    )
    return token
  }

  /**
   * Returns the session of a token, and restarts its idle timeout when that is due. Returns undefined if there is no
   * valid session, and ends the stored session of an account that was changed or removed.
   * @param isUse false for a page that refreshes itself, which does not restart the idle timeout
   * @throws DataAway, StorageError
   */
  async find (token: string, isUse = true): Promise<SignedInSession | undefined> {
    if (this.#settings.isOutdated) throw new errors.DataAway()
    const id = sha256(token)
    const session = await this.#stored.find(id)
    if (session === undefined) return undefined
    let principal = principalOf(session, this.#settings.current)
    if (principal === undefined) {
      // Another replica may just have created or changed the account.
      await this.#settings.refreshFromStore()
      principal = principalOf(session, this.#settings.current)
    }
    if (principal === undefined) {
      await this.#stored.end(id)
      return undefined
    }
    if (isUse && session.age >= managementLimits.console.sessionRenewal) await this.#renew(id)
    return { principal, id }
  }

  /** Whether a session is still valid. Does not restart its idle timeout. @param id the `id` of the session */
  async isValid (id: string): Promise<boolean> {
    const session = await this.#stored.find(id)
    return session !== undefined && principalOf(session, this.#settings.current) !== undefined
  }

  /** Ends the session of a token. @throws StorageError */
  async end (token: string): Promise<void> { await this.#stored.end(sha256(token)) }

  /** Restarts the idle timeout. A failure is only logged, so that pages can be read while the disk is full. */
  async #renew (id: string): Promise<void> {
    await this.#stored.renew(id, managementLimits.console.sessionIdleTimeout).catch((error: unknown) => {
      this.#warn({ err: error }, 'a session of the console could not be extended')
    })
  }
}

function principalOf (session: ConsoleSession, { users }: Snapshot): Principal | undefined {
  const user = users.get(session.username)
  if (!user || rightsMarkOf(user) !== session.mark) return undefined
  return principalOfUser(user, (snapshot) => principalOf(session, snapshot))
}
