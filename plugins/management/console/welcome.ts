import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { Snapshot } from '../../../db/store.ts'
import type { User } from '../../../schemas/settings.ts'
import { sha256 } from '../../base/secrets/index.ts'
import { rightsMarkOf } from '../../identity/index.ts'
import { managementLimits } from '../limits.ts'

/** A code that is not used yet. */
interface Waiting { readonly hash: string, readonly username: string, readonly mark: string, readonly until: number }

/**
 * The link of the first start, by which its reader becomes the first admin: its code is good once, for a short time,
 * and not any more when that admin has chosen a password. It lives in this process alone.
 */
export class WelcomeLink {
  readonly #users: () => Snapshot['users']
  readonly #now: () => number
  #waiting: Waiting | undefined

  /** @param now the clock, in ms since 1970 */
  constructor (users: () => Snapshot['users'], now = () => Date.now()) {
    this.#users = users
    this.#now = now
  }

  /** Makes the code, in place of a former one. @param user the first admin, as stored */
  make (user: User): string {
    const code = randomBytes(32).toString('base64url')
    const until = this.#now() + managementLimits.console.welcome
    this.#waiting = { hash: sha256(code), username: user.username, mark: rightsMarkOf(user), until }
    return code
  }

  /** The admin whom a code makes the reader; undefined: it is not the code, was used, or is too old. */
  find (code: string): User | undefined {
    const waiting = this.#waiting
    if (waiting === undefined || waiting.until <= this.#now()) return undefined
    if (!timingSafeEqual(Buffer.from(sha256(code)), Buffer.from(waiting.hash))) return undefined
    const user = this.#users().get(waiting.username)
    return user && rightsMarkOf(user) === waiting.mark ? user : undefined
  }

  /** The same, and uses the code up. */
  take (code: string): User | undefined {
    const user = this.find(code)
    if (user) this.#waiting = undefined
    return user
  }
}
