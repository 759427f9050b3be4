import type { Static } from '@sinclair/typebox'
import fp from 'fastify-plugin'
import type { User } from '../../../schemas/settings.ts'
import type { NewUser, UserStats, UserUpdate } from '../../../schemas/users.ts'
import { checkReadOnlyMembers } from '../../base/body/index.ts'
import { errors } from '../../base/errors/index.ts'
import { needsRehash, Passwords } from '../../base/secrets/index.ts'
import { type Principal, type Settings, responsibleUsersOf } from '../../settings/index.ts'
import { changesForDemotion, changesForNewUser, changesForRemoval } from './account.ts'
import {
  canonicalUsername, checkUserChosenPasswordWithWarnings, checkAdminSetPassword, defaultOwner, isDefaultOwnerName,
  usernameProblem
} from './rules.ts'
import { createFirstAdmin, type FirstAdmin } from './first-admin.ts'
import { identityLimits } from '../limits.ts'
import { userChangeOf, findUser, requireUser, assertUsernameFree, type ShownUser, toShownUser } from './look-up.ts'

interface UsersOptions {
  /** Whether anyone may create an account (ALLOW_REGISTRATION). */
  allowRegistration: boolean
  /** Whether READONLY is set: then only the first admin is created, and no password is rehashed. */
  readonly: boolean
  /** Logs a warning for the operator. */
  warn: (sentence: string) => void
}

/** Manages the local accounts. A username is found in any spelling with the same canonical form. */
export class Users {
  readonly #settings: Settings
  readonly #passwords: Passwords
  readonly #options: UsersOptions
  readonly #nameRules: Array<(name: string) => string | undefined> = []
  #bootstrapping: Promise<unknown> = Promise.resolve()

  constructor (settings: Settings, passwords: Passwords, options: UsersOptions) {
    this.#settings = settings
    this.#passwords = passwords
    this.#options = options
  }

  get (username: string): User | undefined { return findUser(this.#settings.current, username) }

  list (): ShownUser[] { return [...this.#settings.current.users.values()].map(toShownUser) }

  /** Returns a user in the form of the API. @throws NoSuch */
  getShown (username: string): ShownUser { return toShownUser(requireUser(this.#settings.current, username)) }

  stats (): Static<typeof UserStats> {
    const { users } = this.#settings.current
    const adminUsers = [...users.values()].filter(({ isAdmin }) => isAdmin === true).length
    return { totalUsers: users.size, adminUsers, regularUsers: users.size - adminUsers }
  }

  /**
   * Finds the user with this name and password; undefined if there is none. Unknown names take as long as known names.
   * An imported or outdated hash of the password is replaced.
   * @throws DataAway if a store shared with other replicas has been unavailable for so long that passwords may be
   *   outdated
   */
  async authenticate (username: string, password: string): Promise<User | undefined> {
    // A login may arrive while the first admin is being created.
    await this.#bootstrapping
    // Another replica may just have created the account or changed the password. The store is read again for an unknown
    // name and for a wrong password alike, so that the timing does not reveal whether the name exists.
    const former = this.#settings.current
    if (this.#settings.isOutdated) throw new errors.DataAway()
    const user = await this.#verify(username, password)
    if (user) return user
    await this.#settings.refreshFromStore()
    return this.#settings.current !== former ? await this.#verify(username, password) : undefined
  }

  async #verify (username: string, password: string): Promise<User | undefined> {
    const user = this.get(username)
    const all = [...this.#settings.current.users.values()].map((each) => each.password)
    if (!(await this.#passwords.verify(password, user?.password, all)) || !user) return undefined
    if (user.password === undefined || !needsRehash(user.password) || this.#options.readonly) return user
    return await this.#rehash(user, password)
  }

  /**
   * Adds a rule for the names of accounts that are not created by an admin.
   * @param rule returns why a name is rejected, as a clause; undefined if it is accepted
   */
  addNameRule (rule: (name: string) => string | undefined): void { this.#nameRules.push(rule) }

  /**
   * Stores an account without a password, for a person identified by a provider. Logins with a password are refused.
   * @param user a user whose name is canonical and accepted by `usernameProblem`
   * @throws InvalidInput if the name is taken, LimitReached, ReadOnly
   */
  async createWithoutPassword (user: Omit<User, 'password'>): Promise<void> {
    if (this.#options.readonly) throw new errors.ReadOnly()
    await this.#put(null, user)
  }

  /** Creates a user on behalf of an admin. @param by the admin @throws InvalidInput, WeakPassword, Forbidden */
  async create (by: Principal, { username, password, isAdmin = false }: Static<typeof NewUser>): Promise<ShownUser> {
    const name = this.#newUsername(username)
    checkAdminSetPassword(password)
    return toShownUser(await this.#add(by, { username: name, password, isAdmin }))
  }

  /**
   * Checks that a caller may create an account.
   * @param by the caller; null if the caller is not identified
   * @throws Unauthorized, Forbidden if registration is closed
   */
  assertMayRegister (by: Principal | null): void {
    if (by?.isAdmin === true || this.#options.allowRegistration) return
    const sentence = 'Registration is closed: ask an admin for an account (ALLOW_REGISTRATION opens it)'
    throw by ? new errors.Forbidden(sentence) : new errors.Unauthorized(sentence)
  }

  /**
   * Creates an account with a password that its user chooses. An admin can also create another admin.
   * @param by the caller; null if the caller is not identified
   * @returns the user, and a sentence for each advisory rule that the password breaks
   * @throws InvalidInput, WeakPassword, Forbidden, LimitReached
   */
  async register (
    by: Principal | null, { username, password, isAdmin = false }: Static<typeof NewUser>
  ): Promise<{ user: User; warnings: string[] }> {
    if (isAdmin && by?.isAdmin !== true) {
      throw new errors.Forbidden('Only an admin may create another admin: omit "isAdmin"')
    }
    const name = this.#newUsername(username)
    if (by?.isAdmin !== true && isDefaultOwnerName(name)) {
      throw new errors.InvalidInput(`"username": the username ${JSON.stringify(name)} is reserved`)
    }
    const refused = by?.isAdmin === true
      ? undefined
      : this.#nameRules.map((rule) => rule(name)).find((each) => each !== undefined)
    if (refused !== undefined) throw new errors.InvalidInput(`"username": ${refused}`)
    const warnings = checkUserChosenPasswordWithWarnings(password)
    return { user: await this.#add(by, { username: name, password, isAdmin }), warnings }
  }

  /** Changes a user. @throws NoSuch, InvalidInput, WeakPassword, InvalidChange for the last admin, Forbidden */
  async update (
    by: Principal, username: string, { username: sentName, isAdmin, newPassword }: Static<typeof UserUpdate>
  ): Promise<ShownUser> {
    const stored = this.getShown(username)
    checkReadOnlyMembers({ username: sentName }, stored, ['username'])
    if (isAdmin === undefined && newPassword === undefined) {
      throw new errors.InvalidInput('There is nothing to change: send "isAdmin", "newPassword", or both')
    }
    if (isAdmin === false && stored.username === defaultOwner) {
      throw new errors.InvalidInput(
        `"isAdmin": ${JSON.stringify(defaultOwner)} is always an admin, since it owns everything that has no other ` +
        'owner: remove the user instead'
      )
    }
    if (newPassword !== undefined) checkAdminSetPassword(newPassword)
    const password = newPassword === undefined ? undefined : await this.#passwords.hash(newPassword)
    const snapshot = await this.#settings.change((base) => {
      const user = requireUser(base, username)
      const isDemoted = user.isAdmin === true && isAdmin === false
      const changed = {
        ...(isAdmin === undefined ? {} : { isAdmin }),
        ...(isDemoted ? { demotedAt: new Date().toISOString() } : {}),
        ...(password === undefined ? {} : { password })
      }
      return [userChangeOf({ ...user, ...changed }), ...isDemoted ? changesForDemotion(base, user.username) : []]
    }, by)
    return toShownUser(requireUser(snapshot, username))
  }

  /**
   * Removes a user, with the consequences described at `changesForRemoval`.
   * @throws NoSuch, InvalidInput for the caller's own account, InvalidChange for the last admin, Forbidden
   */
  async remove (by: Principal, username: string): Promise<void> {
    await this.#settings.change((base) => {
      const user = requireUser(base, username)
      if (user.username === by.username) {
        throw new errors.InvalidInput('You cannot delete your own account: another admin can')
      }
      return changesForRemoval(base, user.username, responsibleUsersOf(base.users, by))
    }, by)
  }

  /**
   * Returns the advisory rules that a password breaks, as sentences.
   * @throws WeakPassword if it breaks another rule
   */
  checkNewPassword (password: string): string[] { return checkUserChosenPasswordWithWarnings(password) }

  /** Returns the account of a principal. @throws Forbidden if the principal has no account, and so no password */
  accountOf ({ username }: Principal): User {
    const user = username === undefined ? undefined : this.#settings.current.users.get(username)
    if (!user) {
      throw new errors.Forbidden(
        'This credential does not belong to an account, so there is no password to change: log in as a user'
      )
    }
    return user
  }

  /**
   * Sets a new password for a user who has just proved the current one. Earlier login tokens become invalid.
   * @returns the changed user
   * @throws WeakPassword, Unauthorized if the account changed meanwhile
   */
  async changePassword (user: User, newPassword: string): Promise<User> {
    checkUserChosenPasswordWithWarnings(newPassword)
    const password = await this.#passwords.hash(newPassword)
    const snapshot = await this.#settings.change(({ users }) => {
      const current = users.get(user.username)
      if (!current || current.password !== user.password || current.createdAt !== user.createdAt) {
        throw new errors.Unauthorized('The password was changed in the meantime: log in again')
      }
      return [userChangeOf({ ...current, password })]
    }, user.username)
    return requireUser(snapshot, user.username)
  }

  /**
   * Creates the first admin if there are no users.
   * @param givenPassword the password; undefined to generate one
   * @param after the admin is created once this resolves, and not at all if it rejects; logins wait meanwhile
   * @param announce informs the operator before the admin is stored; if it rejects, no admin is stored
   * @returns the admin, with a generated password that is to be shown once; undefined if this process created none
   */
  createFirstAdmin (
    givenPassword: string | undefined,
    after: Promise<unknown> = Promise.resolve(),
    announce?: (admin: FirstAdmin) => Promise<void>
  ): Promise<FirstAdmin | undefined> {
    const create = async (): Promise<FirstAdmin | undefined> =>
      await createFirstAdmin(this.#settings, this.#passwords, this.#options.warn, givenPassword, announce)
    const bootstrapping = after.then(() => true, () => false).then(async (isDue) => isDue ? await create() : undefined)
    this.#bootstrapping = bootstrapping.catch(() => {})
    return bootstrapping
  }

  /** Returns the canonical spelling of a new user's name. @throws InvalidInput if the name is invalid or taken */
  #newUsername (username: string): string {
    const name = canonicalUsername(username)
    const problem = usernameProblem(name)
    if (problem !== undefined) throw new errors.InvalidInput(`"username": ${problem}`)
    assertUsernameFree(this.#settings.current, name)
    return name
  }

  /** Stores a new user. @param by null for an unidentified caller @throws InvalidInput, LimitReached, Forbidden */
  async #add (by: Principal | null, { username, password, isAdmin }: Required<Static<typeof NewUser>>): Promise<User> {
    // An account with the default owner's name owns everything without an explicit owner, so it must be an admin.
    if (username === defaultOwner && !isAdmin) {
      throw new errors.InvalidInput(
        `"username": ${JSON.stringify(username)} is always an admin, since it owns everything that has no other ` +
        'owner: send "isAdmin": true with it, or choose another name'
      )
    }
    return await this.#put(
      by, { username, password: await this.#passwords.hash(password), isAdmin, createdAt: new Date().toISOString() }
    )
  }

  async #put (by: Principal | null, user: User): Promise<User> {
    await this.#settings.change((base) => {
      if (by?.isAdmin !== true && base.users.size >= identityLimits.users) {
        throw new errors.LimitReached(`There are already ${identityLimits.users} accounts: only an admin can add more`)
      }
      assertUsernameFree(base, user.username)
      return [...changesForNewUser(base, user.username), userChangeOf(user)]
    }, by ?? user.username)
    return user
  }

  /** Replaces an imported or outdated hash, now that the password is known. A failure does not make the login fail. */
  async #rehash (user: User, password: string): Promise<User | undefined> {
    const hashed = await this.#passwords.hash(password)
    await this.#settings
      .change(({ users }) => {
        const current = users.get(user.username)
        return current && current.password === user.password ? [userChangeOf({ ...current, password: hashed })] : []
      })
      .catch(() => {})
    const now = this.get(user.username)
    if (now?.password === hashed || now?.password === user.password) return now
    // Another login has rehashed the same password, or the password was changed.
    return await this.authenticate(user.username, password)
  }
}

declare module 'fastify' {
  interface FastifyInstance { users: Users }
}

/** `app.users`: the local accounts. */
export default fp(async (app) => {
  const { ALLOW_REGISTRATION: allowRegistration, READONLY: readonly } = app.config.env
  const warn = (sentence: string): void => { app.log.warn(sentence) }
  app.decorate('users', new Users(app.settings, new Passwords(), { allowRegistration, readonly, warn }))
}, { name: 'users', dependencies: ['config', 'settings'] })
