import type { Static } from '@sinclair/typebox'
import type { BrowserStates } from '../../../db/ports/login-states.ts'
import type { StoredUserValues, UserValueKey, UserValueRecords } from '../../../db/ports/user-values.ts'
import type { Server, Snapshot } from '../../../db/store.ts'
import { isObject } from '../../../protocol/json.ts'
import { memoized } from '../../../protocol/memoized.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import type { MyVariables } from '../../../schemas/server-api.ts'
import {
  type UserVariableValues, hasUserVariables, missingVariables, userVariableTargetFingerprint, valueProblem
} from '../../../schemas/user-variables.ts'
import { errors } from '../../base/errors/index.ts'
import { sha256 } from '../../base/secrets/index.ts'
import { accountSubjectOf, principalOfUser, removedAccountNames } from '../../identity/index.ts'
import { canSee, type Settings } from '../../settings/index.ts'
import { upstreamLimits } from '../limits.ts'
import { hashOfTicket, newTicket } from '../login/starts.ts'
import {
  findValues, type GivenByUser, type PageAddress, ServerValues, valuesAfter, type ValuesListener
} from './server-values.ts'

interface UserValuesDeps {
  readonly records: UserValueRecords
  readonly states: BrowserStates
  readonly settings: () => Snapshot
  /** Whether a value contains a credential of this gateway, which must not be sent to a server. */
  readonly isOwnCredential: (value: string) => boolean
  /** The public base URL of this gateway. */
  readonly baseUrl: () => string
}

/** A page on which a user enters values. Its URL contains a secret ticket. */
interface TicketPage {
  readonly server: Server
  readonly user: string
  /** The version of the user's values when the page was created; undefined if there were none. */
  readonly version: string | undefined
}

/**
 * What is stored under the hash of a ticket: the key of the values to enter, and the version of those stored so far.
 */
interface PageState extends UserValueKey { readonly version?: string }

/** How far back changes made by other replicas are looked up, in ms: longer than a write to a slow storage takes. */
const lookBack = 30_000
/** Max attempts to store values that are changed concurrently. */
const maxAttempts = 5

/** Returns a hash of the target to which the values of a server's users are sent. */
const targetOf = memoized((config: ServerConfig) => sha256(userVariableTargetFingerprint(config)))

/** The values that users provide for servers (`userVariables`). */
export class UserValues {
  readonly #deps: UserValuesDeps
  readonly #servers = new Map<string, ServerValues>()

  constructor (deps: UserValuesDeps) {
    this.#deps = deps
  }

  /** Creates the `ServerValues` of a running server, in place of the former; undefined if it has no user variables. */
  open (name: string, config: ServerConfig, changed: ValuesListener): ServerValues | undefined {
    this.#servers.delete(name)
    const values = this.openForTest(name, config, changed)
    if (values) this.#servers.set(name, values)
    return values
  }

  /** Creates the `ServerValues` for a test of a server. @returns undefined if the config has no user variables */
  openForTest (name: string, config: ServerConfig, changed: ValuesListener): ServerValues | undefined {
    if (!hasUserVariables(config)) return undefined
    const { records } = this.#deps
    return new ServerValues({
      server: name,
      config,
      owner: config.owner ?? 'admin',
      records,
      keyOf: (user) => this.#keyOf({ name, config }, user),
      openPage: async (key) => await this.#openPage(key),
      changed
    })
  }

  close (name: string, values: ServerValues): void {
    if (this.#servers.get(name) === values) this.#servers.delete(name)
  }

  /** Lists the user variables of a server. `isSet`: whether the user has provided a value. @throws StorageError */
  async describe (server: Server, user: string): Promise<Static<typeof MyVariables>> {
    const { values = {} } = await this.#find(server, user) ?? {}
    return (server.config.userVariables ?? []).map(({ name, title, description, secret = true, required = true }) => ({
      name,
      ...(title === undefined ? {} : { title }),
      ...(description === undefined ? {} : { description }),
      secret,
      required,
      isSet: Object.hasOwn(values, name)
    }))
  }

  /**
   * Stores values of a user. Values of other variables are kept.
   * @param given the values; null removes one
   * @returns the names of the required variables without a value
   * @throws InvalidInput for a value that cannot be used, StorageError
   */
  async set (server: Server, user: string, given: GivenByUser): Promise<string[]> {
    const key = this.#check(server, user, given)
    if ((server.config.userVariables ?? []).length === 0) return []
    for (let left = maxAttempts; left > 0; left--) {
      const stored = await this.#deps.records.find(key.server, key.user)
      const values = valuesAfter(key, stored, given)
      if (await this.#swap(key, stored?.version, values)) return missingVariables(server.config, values)
    }
    throw new errors.StorageAway('too many changes at once')
  }

  /**
   * Stores the values that a user entered on a page. Together, the entered and the stored values must include all
   * required values. The user's other pages for this server become invalid.
   * @returns false if this page is no longer valid, so that nothing is stored
   * @throws InvalidInput for a value that cannot be used or is missing, StorageError
   */
  async giveOnPage ({ server, user, version }: TicketPage, given: Readonly<Record<string, string>>): Promise<boolean> {
    const key = this.#check(server, user, given)
    const stored = await this.#deps.records.find(key.server, key.user)
    if (stored?.version !== version) return false
    const values = valuesAfter(key, stored, given)
    const missing = missingVariables(server.config, values)
    if (missing.length > 0) throw new errors.InvalidInput(`Fill in ${missing.join(', ')} as well; nothing was stored`)
    return await this.#swap(key, version, values)
  }

  /**
   * Checks values that a user enters.
   * @returns the key under which they are stored
   * @throws InvalidInput for a value that cannot be used, NotFound for an unknown user
   */
  #check (server: Server, user: string, given: GivenByUser): UserValueKey {
    const names = new Set((server.config.userVariables ?? []).map(({ name }) => name))
    for (const [name, value] of Object.entries(given)) {
      if (!names.has(name)) throw new errors.InvalidInput(`"values.${name}": the server has no variable with this name`)
      const problem = value === null ? undefined : valueProblem(server.config, name, value) ?? this.#ownProblem(value)
      if (problem !== undefined) throw new errors.InvalidInput(`"values.${name}": the value ${problem}`)
    }
    const key = this.#keyOf(server, user)
    if (!key) throw new errors.NotFound()
    return key
  }

  /** Replaces a user's values. @returns false if the stored ones have another version, so that nothing is stored */
  async #swap (key: UserValueKey, version: string | undefined, values: UserVariableValues): Promise<boolean> {
    if (!await this.#deps.records.swap(key, version, Object.fromEntries(values))) return false
    await this.#servers.get(key.server)?.onChanged(key.user)
    return true
  }

  /** Deletes the values of a user for a server. @returns whether there were any @throws StorageError */
  async forget (server: Server, user: string): Promise<boolean> {
    const key = this.#keyOf(server, user)
    const stored = await this.#find(server, user)
    if (!key || !stored || Object.keys(stored.values).length === 0) return false
    await this.#deps.records.forget(key)
    await this.#servers.get(server.name)?.onChanged(user)
    return true
  }

  /** Lists the users who have provided values for a server, with the names of the variables. @throws StorageError */
  async list (server: Server): Promise<Array<{ username: string, names: string[], updatedAt: string }>> {
    const stored = await this.#deps.records.list(server.name)
    return stored.flatMap(({ user, account, target, values, updatedAt }) => {
      const key = this.#keyOf(server, user)
      const names = Object.keys(values).sort()
      const isCurrent = key?.account === account && key.target === target
      return isCurrent && names.length > 0
        ? [{ username: user, names, updatedAt: new Date(updatedAt).toISOString() }]
        : []
    }).sort((one, other) => one.username < other.username ? -1 : 1)
  }

  /**
   * Finds the page of a ticket.
   * @returns undefined if the ticket is unknown or has expired, if the values, the server's target or the account have
   *   changed since, or if the server is hidden from the user
   * @throws StorageError
   */
  async findPage (ticket: string): Promise<TicketPage | undefined> {
    const state = /^[\w-]{43}$/.test(ticket) ? await this.#deps.states.find(hashOfTicket(ticket)) : undefined
    if (state?.kind !== 'user-values' || !isObject(state.value)) return undefined
    const { server: name, user, account, target, version } = state.value as unknown as PageState
    const snapshot = this.#deps.settings()
    const { servers, users } = snapshot
    const [server, known] = [servers.get(name), users.get(user)]
    const key = server && this.#keyOf(server, user)
    if (!server || !known || key?.account !== account || key.target !== target) return undefined
    if (!canSee(snapshot, principalOfUser(known, undefined), server, 'public')) return undefined
    const stored = await this.#deps.records.find(name, user)
    return stored?.version === version ? { server, user, version } : undefined
  }

  /**
   * Renames a server without losing its users' values: they are copied to the new name before the settings change.
   * @param next the new name
   * @param change renames the server in the settings
   * @throws the errors of `change`, StorageError
   */
  async renameServer (
    server: Server, next: string, settings: Settings, change: () => Promise<unknown>
  ): Promise<void> {
    const { records } = this.#deps
    const isCopied = hasUserVariables(server.config) && !settings.current.servers.has(next)
    const target = targetOf(server.config)
    for (const { values, ...key } of isCopied ? await records.list(server.name) : []) {
      await records.swap({ ...key, server: next }, undefined, values)
    }
    try {
      await change()
    } finally {
      const now = settings.current.servers.get(next)
      if (isCopied && (!now || targetOf(now.config) !== target)) await records.removeAll({ server: next, target })
    }
  }

  /** Applies recent changes of values that were made by other replicas. @throws StorageError */
  async syncReplicas (): Promise<void> {
    if (this.#servers.size === 0) return
    for (const { server, user, version } of await this.#deps.records.listChangedWithin(lookBack)) {
      await this.#servers.get(server)?.onChanged(user, version)
    }
  }

  /**
   * Removes the values of servers and accounts that a change of the settings removed or replaced.
   * @throws StorageError
   */
  async removeGone (former: Snapshot, next: Snapshot): Promise<void> {
    const { records } = this.#deps
    const accounts = [...removedAccountNames(former.users, next.users)].flatMap((name) => former.users.get(name) ?? [])
    // Values in memory are forgotten before the first `await`: a new account of the same name may appear at any time.
    const running = [...this.#servers.values()]
    await Promise.all(
      accounts.flatMap(({ username }) => running.map(async (values) => { await values.onChanged(username) }))
    )
    for (const [server, { config }] of former.servers === next.servers ? [] : former.servers) {
      const now = next.servers.get(server)?.config
      if (now === config || !hasUserVariables(config)) continue
      const target = targetOf(config)
      if (!now || targetOf(now) !== target) await records.removeAll({ server, target })
    }
    for (const user of accounts) await records.removeAll({ account: accountSubjectOf(user) })
  }

  /**
   * Removes the values of servers and accounts that were removed or replaced while this gateway was not running.
   * @throws StorageError
   */
  async sweep (): Promise<void> {
    const { servers } = this.#deps.settings()
    await this.#deps.records.sweep(({ server: name, user, account, target }) => {
      const server = servers.get(name)
      const key = server && this.#keyOf(server, user)
      return key?.account === account && key.target === target
    })
  }

  async #find (server: Server, user: string): Promise<StoredUserValues | undefined> {
    const key = this.#keyOf(server, user)
    return key && await findValues(this.#deps.records, key)
  }

  #ownProblem (value: string): string | undefined {
    return this.#deps.isOwnCredential(value)
      ? 'is a credential of this gateway, which is never sent to a server'
      : undefined
  }

  #keyOf ({ name, config }: Pick<Server, 'name' | 'config'>, user: string): UserValueKey | undefined {
    const known = this.#deps.settings().users.get(user)
    return known && { server: name, user, account: accountSubjectOf(known), target: targetOf(config) }
  }

  async #openPage (key: UserValueKey): Promise<PageAddress> {
    const ticket = newTicket()
    const createdAt = Date.now()
    const stored = await this.#deps.records.find(key.server, key.user)
    const value: PageState = { ...key, ...stored && { version: stored.version } }
    await this.#deps.states.put(
      hashOfTicket(ticket), { kind: 'user-values', value, createdAt }, createdAt + upstreamLimits.login.flowTime
    )
    return { url: `${this.#deps.baseUrl()}/oauth/login/${ticket}`, version: stored?.version }
  }
}
