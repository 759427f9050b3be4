import fp from 'fastify-plugin'
import type { Server } from '../../../db/store.ts'
import { errors } from '../../base/errors/index.ts'
import { type AuditedChange, type Author, type Principal, type Settings, toAuthor } from '../../settings/index.ts'
import type { UserValues } from '../../upstream/index.ts'
import { requireManagedServer, requireVisibleServer } from '../checks.ts'

/** The variables of a server, with the state of a user's values. */
type DescribedVariables = Awaited<ReturnType<UserValues['describe']>>
/** The users who have set values for a server. */
type ValueOwners = Awaited<ReturnType<UserValues['list']>>
type AddChange = (by: Author, change: AuditedChange) => void

/** Reads and changes, for the management API, the values that users set for servers with `userVariables`. */
class OwnVariables {
  readonly #settings: Settings
  readonly #values: UserValues
  readonly #addChange: AddChange

  /** @param addChange records a change in the audit log */
  constructor (settings: Settings, values: UserValues, addChange: AddChange) {
    this.#settings = settings
    this.#values = values
    this.#addChange = addChange
  }

  /** Checks that the principal is a stored user, and may see a server. @throws NoSuch, Forbidden */
  assertIsUser (principal: Principal, name: string): void { this.#serverAndUser(principal, name) }

  /** Returns the variables of a server, and which of them the principal has set. @throws NoSuch, Forbidden */
  async get (principal: Principal, name: string): Promise<DescribedVariables> {
    const { server, user } = this.#serverAndUser(principal, name)
    return await this.#values.describe(server, user)
  }

  /**
   * Sets values of the principal for a server.
   * @param values the values by variable; null removes one, and variables that are absent keep their values
   * @returns the variables as in `get`, and a message that names variables without a value
   * @throws NoSuch, Forbidden, InvalidInput
   */
  async setValues (
    principal: Principal, name: string, values: Readonly<Record<string, string | null>>
  ): Promise<{ data: DescribedVariables, message: string }> {
    const { server, user } = this.#serverAndUser(principal, name)
    const missing = await this.#values.set(server, user, values)
    this.#addChange(toAuthor(principal), {
      entity: 'values', name, after: { server: name, user, names: Object.keys(values) }
    })
    const message = missing.length === 0
      ? 'Your values were stored'
      : `Your values were stored. Still missing: ${missing.join(', ')}`
    return { data: await this.#values.describe(server, user), message }
  }

  /** Removes the principal's values for a server. @returns whether there were any @throws NoSuch, Forbidden */
  async forget (principal: Principal, name: string): Promise<boolean> {
    const { server, user } = this.#serverAndUser(principal, name)
    const existed = await this.#values.forget(server, user)
    if (existed) this.#addChange(toAuthor(principal), { entity: 'values', name, before: { server: name, user } })
    return existed
  }

  /**
   * Returns the users who set values for a server that the principal manages, with the names of these values.
   * @throws NoSuch, Forbidden
   */
  async list (principal: Principal, name: string): Promise<ValueOwners> {
    return await this.#values.list(requireManagedServer(this.#settings.current, principal, name))
  }

  #serverAndUser (principal: Principal, name: string): { server: Server, user: string } {
    const { current } = this.#settings
    const server = requireVisibleServer(current, principal, name)
    const { username: user } = principal
    if (user === undefined || !current.users.has(user)) {
      throw new errors.Forbidden('Only users can set values: use a login, a key or an access token of a user')
    }
    return { server, user }
  }
}

declare module 'fastify' {
  interface FastifyInstance { ownVariables: OwnVariables }
}

/** Decorates the app with `ownVariables`, which reads and changes the values that users set for servers. */
export default fp(async (app) => {
  app.decorate('ownVariables', new OwnVariables(app.settings, app.userValues, (...change) => {
    app.audit.addChange(...change)
  }))
}, { name: 'own-variables', dependencies: ['settings', 'audit', 'user-values'] })
