import { randomBytes } from 'node:crypto'
import type { User } from '../../schemas/settings.ts'
import { hashPassword, isOutdated, verifyPassword } from '../secrets/password.ts'
import type { Settings } from '../settings/settings.ts'

/** The local accounts. */
export class Users {
  readonly #settings: Settings
  #bootstrapping: Promise<unknown> = Promise.resolve()

  constructor (settings: Settings) {
    this.#settings = settings
  }

  get (username: string): User | undefined {
    return this.#settings.current.users.get(username)
  }

  /** The user with this name and password. Takes as long for a name that nobody has. */
  async authenticate (username: string, password: string): Promise<User | undefined> {
    // Who logs in while the first admin is being made is no stranger.
    await this.#bootstrapping
    const user = this.get(username)
    if (!await verifyPassword(password, user?.password) || !user) return undefined
    if (user.password !== undefined && isOutdated(user.password)) await this.#rehash(user, password)
    return user
  }

  /**
   * Makes the first admin, where there are no users at all (SPEC, "JWT").
   * @param given the password to give it; undefined: a random one is made
   * @returns the random password, to be shown once
   */
  bootstrap (given: string | undefined): Promise<string | undefined> {
    const bootstrapping = this.#bootstrap(given)
    this.#bootstrapping = bootstrapping.catch(() => {})
    return bootstrapping
  }

  async #bootstrap (given: string | undefined): Promise<string | undefined> {
    if (this.#settings.current.users.size > 0) return undefined
    const password = given ?? randomBytes(12).toString('base64url')
    const hashed = await hashPassword(password)
    await this.#settings.change(({ users }) => users.size > 0 ? [] : [{ entity: 'users', key: 'admin', value: { username: 'admin', password: hashed, isAdmin: true } }])
    return given === undefined ? password : undefined
  }

  /** An imported file's hash is replaced by one of ours, now that the password is at hand. A login does not fail for it. */
  async #rehash (user: User, password: string): Promise<void> {
    const hashed = await hashPassword(password)
    await this.#settings.change(({ users }) => {
      const current = users.get(user.username)
      return current !== undefined && current.password === user.password ? [{ entity: 'users', key: user.username, value: { ...current, password: hashed } }] : []
    }).catch(() => {})
  }
}
