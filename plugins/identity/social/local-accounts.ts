import type { Snapshot } from '../../../db/store.ts'
import { createHash } from 'node:crypto'
import { foldUsername } from '../../../db/invariants.ts'
import type { SocialIdentityLink, SocialLogins } from '../../../db/ports/social-logins.ts'
import type { User } from '../../../schemas/settings.ts'
import { errors } from '../../base/errors/index.ts'
import type { Settings } from '../../settings/index.ts'
import { accountSubjectOf } from '../users/account.ts'
import type { Teams } from '../teams/teams.ts'
import type { Users } from '../users/users.ts'
import { canonicalUsername, isDefaultOwnerName, usernameProblem } from '../users/rules.ts'
import type { Person } from './providers/provider.ts'

interface SocialAccountsDeps {
  readonly settings: Pick<Settings, 'current' | 'refreshFromStore'>
  readonly users: Pick<Users, 'createWithoutPassword'>
  readonly teams: Pick<Teams, 'recordLoginGroups'>
  readonly logins: Pick<SocialLogins, 'find' | 'put' | 'remove' | 'findCreatingIdentity'>
  /** Logs a refused login for the operator. */
  readonly logRefusal: (about: { provider: string, username: string }, reason: string) => void
}

/** Returns the SHA-256, in hex, of an identity: the provider, and the provider's identifier for the person. */
export const identityHash = ({ provider, subject }: Pick<Person, 'provider' | 'subject'>): string =>
  createHash('sha256').update(JSON.stringify([provider, subject])).digest('hex')

/**
 * Returns the e-mail address under which better-auth stores a person. Each identity has its own, so that better-auth
 * never links two identities because providers report the same address.
 * @param hash the `identityHash` of the person
 */
export const syntheticEmailOf = (hash: string): string => `${hash}@identity.invalid`

/** Converts ASCII letters to lower case, to compare e-mail addresses. Other letters may distinguish mailboxes. */
const foldEmail = (email: string): string => email.replace(/[A-Z]/g, (letter) => letter.toLowerCase())

/** Finds or creates the local account of a person at a provider. It never makes a user an admin. */
export class SocialAccounts {
  readonly #deps: SocialAccountsDeps

  constructor (deps: SocialAccountsDeps) {
    this.#deps = deps
  }

  get snapshot (): Snapshot { return this.#deps.settings.current }

  /**
   * Returns the local account of a person. A person with a verified e-mail address gets the account with this address
   * as its username; otherwise, a person gets only the account that was created for the same identity. An account that
   * does not exist yet is created. The groups of the person determine the teams of the account.
   * @throws Forbidden if the account belongs to somebody else; ReadOnly, LimitReached, StorageAway
   */
  async findOrCreate (person: Person): Promise<User> {
    const user = await this.#findOrCreate(person)
    if (person.groups) await this.#deps.teams.recordLoginGroups(user.username, person.groups)
    return user
  }

  async #findOrCreate (person: Person): Promise<User> {
    const hash = identityHash(person)
    // Another replica may just have created the account.
    await this.#deps.settings.refreshFromStore()
    for (let tries = 0; ; tries++) {
      const user = await this.#findBound(person, hash) ?? await this.#findByName(person, hash)
      if (user) return user
      try {
        return await this.#create(person, hash)
      } catch (error) {
        // The name was taken meanwhile: try once more.
        if (!(error instanceof errors.InvalidInput) || tries > 0) throw error
      }
    }
  }

  /**
   * Finds the account to which the identity is bound, if that account still exists. If the provider has verified the
   * e-mail address since the account was created, the binding is marked as verified.
   */
  async #findBound (person: Person, hash: string): Promise<User | undefined> {
    const identity = await this.#deps.logins.find(hash)
    const user = identity && this.#users.get(identity.username)
    if (!user || accountSubjectOf(user) !== identity.subject) return undefined
    const isVerified = hasVerifiedEmailAsName(person, user)
    if (identity.created && isVerified && !identity.verified) await this.#bind(person, hash, user, true)
    // A binding by e-mail address is valid only while the provider verifies the address.
    return identity.created || isVerified ? user : undefined
  }

  /** Finds an existing account with the person's name, and binds the identity to it. @throws Forbidden */
  async #findByName (person: Person, hash: string): Promise<User | undefined> {
    const name = this.#nameOf(person, hash)
    const folded = foldUsername(name)
    const user =
      this.#users.get(name) ?? [...this.#users.values()].find(({ username }) => foldUsername(username) === folded)
    if (!user) return undefined
    if (!hasVerifiedEmailAsName(person, user)) {
      throw this.#refusal(person, user, 'the provider does not confirm that this person has the e-mail address')
    }
    const creator = await this.#deps.logins.findCreatingIdentity(user.username, accountSubjectOf(user))
    // Somebody else may have created the account to share it with the owner of this address.
    if (creator && !creator.verified && creator.hash !== hash) {
      throw this.#refusal(person, user, 'the account was created for somebody with an unverified address')
    }
    await this.#bind(person, hash, user, false)
    return user
  }

  async #create (person: Person, hash: string): Promise<User> {
    const user = { username: this.#nameOf(person, hash), isAdmin: false, createdAt: new Date().toISOString() }
    // The identity is bound first: nobody could use an account without a bound identity.
    await this.#bind(person, hash, user, true)
    try {
      await this.#deps.users.createWithoutPassword(user)
    } catch (error) {
      if (error instanceof errors.InvalidInput) await this.#deps.logins.remove(hash)
      throw error
    }
    return user
  }

  async #bind (person: Person, hash: string, user: User, created: boolean): Promise<void> {
    const { username } = user
    const identity: SocialIdentityLink = {
      hash,
      provider: person.provider,
      username,
      subject: accountSubjectOf(user),
      created,
      verified: hasVerifiedEmailAsName(person, user)
    }
    await this.#deps.logins.put(identity)
  }

  /**
   * Returns the username for a new account: the person's e-mail address, or the name of a person without an address. If
   * that is missing, or not a valid username, the subject is used; if it is not valid either, a name with the hash.
   */
  #nameOf ({ provider, subject, email, name }: Person, hash: string): string {
    const names = [email === undefined ? name ?? subject : foldEmail(email), subject].map(canonicalUsername)
    const isPossible = (each: string): boolean =>
      usernameProblem(each) === undefined && (!isDefaultOwnerName(each) || this.#users.has(each))
    return names.find(isPossible) ?? `${provider}-${hash.slice(0, 16)}`
  }

  #refusal ({ provider }: Person, { username }: User, reason: string): Error {
    this.#deps.logRefusal({ provider, username }, reason)
    return new errors.Forbidden(
      'There is already an account with that name, and this login cannot be linked to it. Log in with its password, ' +
      'or ask an admin'
    )
  }

  get #users (): ReadonlyMap<string, User> { return this.#deps.settings.current.users }
}

/**
 * Whether a person's verified e-mail address is the name of an account. A provider may send a text without `@`, such as
 * a username that users choose, which does not count as an address.
 */
const hasVerifiedEmailAsName = ({ email, isEmailVerified: isVerified }: Person, { username }: User): boolean =>
  isVerified && email?.includes('@') === true && foldEmail(email) === foldEmail(username)
