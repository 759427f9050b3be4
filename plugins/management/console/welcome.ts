import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { Snapshot } from '../../../db/store.ts'
import type { User } from '../../../schemas/settings.ts'
import { sha256 } from '../../base/secrets/index.ts'
import { rightsMarkOf } from '../../identity/index.ts'
import { managementLimits } from '../limits.ts'

/**
 * The code in the link of the first start. `hash`: its SHA-256; `mark`: the version of the admin's password and rights
 * when the code was made (`rightsMarkOf`); `until`: its expiry, in ms since 1970.
 */
interface WelcomeCode {
  readonly hash: string, readonly username: string, readonly mark: string, readonly until: number
}

/**
 * The one-time link of the first start: whoever uses it is signed in as the first admin. Its code is kept in memory
 * only. The code expires after `welcomeLinkLifetime`, after use, and when the password or rights of the admin change.
 */
export class WelcomeLink {
  readonly #users: () => Snapshot['users']
  readonly #now: () => number
  #current: WelcomeCode | undefined

  /** @param now the clock, in ms since 1970 */
  constructor (users: () => Snapshot['users'], now = () => Date.now()) {
    this.#users = users
    this.#now = now
  }

  /** Creates a code, which replaces the former one. @param user the first admin, as stored */
  createCode (user: User): string {
    const code = randomBytes(32).toString('base64url')
    const until = this.#now() + managementLimits.console.welcomeLinkLifetime
    this.#current = { hash: sha256(code), username: user.username, mark: rightsMarkOf(user), until }
    return code
  }

  /** Returns the admin whom a code signs in; undefined if the code is wrong, used or expired. */
  find (code: string): User | undefined {
    const current = this.#current
    if (current === undefined || current.until <= this.#now()) return undefined
    if (!timingSafeEqual(Buffer.from(sha256(code)), Buffer.from(current.hash))) return undefined
    const user = this.#users().get(current.username)
    return user && rightsMarkOf(user) === current.mark ? user : undefined
  }

  /** Like `find`, and invalidates the code. */
  take (code: string): User | undefined {
    const user = this.find(code)
    if (user) this.#current = undefined
    return user
  }
}
