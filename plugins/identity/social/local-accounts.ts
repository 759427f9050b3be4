import type { Snapshot } from '../../../db/store.ts'
import { createHash } from 'node:crypto'
import { foldName } from '../../../db/invariants.ts'
import type { SocialIdentity, SocialLogins } from '../../../db/ports/social-logins.ts'
import type { User } from '../../../schemas/settings.ts'
import { errors } from '../../base/errors/index.ts'
import type { Settings } from '../../settings/index.ts'
import { subjectOf } from '../users/account.ts'
import type { Users } from '../users/users.ts'
import { canonicalName, isDefaultOwner, usernameProblem } from '../users/rules.ts'
import type { Person } from './providers/provider.ts'

interface LocalAccountsDeps {
  readonly settings: Pick<Settings, 'current' | 'lookUp'>
  readonly users: Pick<Users, 'createWithoutPassword'>
  readonly logins: Pick<SocialLogins, 'find' | 'put' | 'remove' | 'creatorOf'>
  /** Logs a refused login for the operator. */
  readonly refused: (about: { provider: string, username: string }, reason: string) => void
}

/** The hash of an identity: of a provider and its name for a person. */
export const identityHash = ({ provider, subject }: Pick<Person, 'provider' | 'subject'>): string =>
  createHash('sha256').update(JSON.stringify([provider, subject])).digest('hex')

/**
 * The e-mail address of a person at better-auth: unique to the identity, so that no two are ever linked by what a
 * provider says.
 */
export const emailOf = (hash: string): string => `${hash}@identity.invalid`

/**
 * An e-mail address for comparison. Only ASCII letters are folded: other letters that look alike may be other
 * mailboxes.
 */
const foldEmail = (email: string): string => email.replace(/[A-Z]/g, (letter) => letter.toLowerCase())

/** Finds, or makes, the local account that a person at a provider enters. It never makes anybody an admin. */
export class LocalAccounts {
  readonly #deps: LocalAccountsDeps

  constructor (deps: LocalAccountsDeps) {
    this.#deps = deps
  }

  /** The settings of now. */
  get snapshot (): Snapshot { return this.#deps.settings.current }

  /**
   * The local account of a person. A verified e-mail address enters the account of that name. Anything else enters only
   * the account that was made for the same identity, and where there is none, one is made.
   * @throws Forbidden for an account that is somebody else's; ReadOnly, LimitReached, StorageAway
   */
  async enter (person: Person): Promise<User> {
    const hash = identityHash(person)
    // Another replica may have made the account just now.
    await this.#deps.settings.lookUp()
    for (let tries = 0; ; tries++) {
      const user = await this.#bound(person, hash) ?? await this.#existing(person, hash)
      if (user) return user
      try {
        return await this.#create(person, hash)
      } catch (error) {
        // Somebody else has taken the name meanwhile: it is judged again.
        if (!(error instanceof errors.InvalidInput) || tries > 0) throw error
      }
    }
  }

  /** The account that the identity was bound to, as long as that account is the same one. */
  async #bound (person: Person, hash: string): Promise<User | undefined> {
    const identity = await this.#deps.logins.find(hash)
    const user = identity && this.#users.get(identity.username)
    if (!user || subjectOf(user) !== identity.subject) return undefined
    const isVerified = emailNames(person, user)
    if (identity.created && isVerified && !identity.verified) await this.#bind(person, hash, user, true)
    // An identity that was bound by an address counts while the address is the person's.
    return identity.created || isVerified ? user : undefined
  }

  /** An account that is there already. @throws Forbidden */
  async #existing (person: Person, hash: string): Promise<User | undefined> {
    const name = this.#nameOf(person, hash)
    const folded = foldName(name)
    const user =
      this.#users.get(name) ?? [...this.#users.values()].find(({ username }) => foldName(username) === folded)
    if (!user) return undefined
    if (!emailNames(person, user)) {
      throw this.#refuse(person, user, 'it is not vouched for that the name is this person\'s')
    }
    const creator = await this.#deps.logins.creatorOf(user.username, subjectOf(user))
    // Somebody may have waited in the account for the one whose address it is.
    if (creator && !creator.verified && creator.hash !== hash) {
      throw this.#refuse(person, user, 'it was made for somebody who had not verified the address')
    }
    await this.#bind(person, hash, user, false)
    return user
  }

  async #create (person: Person, hash: string): Promise<User> {
    const user = { username: this.#nameOf(person, hash), isAdmin: false, createdAt: new Date().toISOString() }
    // Bound first: nobody could enter an account without a bound identity.
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
    const identity: SocialIdentity = {
      hash,
      provider: person.provider,
      username,
      subject: subjectOf(user),
      created,
      verified: emailNames(person, user)
    }
    await this.#deps.logins.put(identity)
  }

  /**
   * `email ?? name ?? id`; where an account cannot have such a name the id, and where it cannot have that either, one
   * of the hash.
   */
  #nameOf ({ provider, subject, email, name }: Person, hash: string): string {
    const names = [email === undefined ? name ?? subject : foldEmail(email), subject].map(canonicalName)
    const isPossible = (each: string): boolean =>
      usernameProblem(each) === undefined && (!isDefaultOwner(each) || this.#users.has(each))
    return names.find(isPossible) ?? `${provider}-${hash.slice(0, 16)}`
  }

  #refuse ({ provider }: Person, { username }: User, reason: string): Error {
    this.#deps.refused({ provider, username }, reason)
    return new errors.Forbidden(
      'There is an account of that name already, and this login may not enter it. Log in with its password, or ask ' +
      'an admin'
    )
  }

  get #users (): ReadonlyMap<string, User> { return this.#deps.settings.current.users }
}

/** Whether a person's verified e-mail address is the name of an account. */
const emailNames = ({ email, isVerified }: Person, { username }: User): boolean =>
  isVerified && email !== undefined && foldEmail(email) === foldEmail(username)
