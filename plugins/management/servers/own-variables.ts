import fp from 'fastify-plugin'
import type { Server } from '../../../db/store.ts'
import { errors } from '../../base/errors/index.ts'
import { type AuditedChange, type Author, type Principal, type Settings, toAuthor } from '../../settings/index.ts'
import type { UserValues } from '../../upstream/index.ts'
import { managedServer, visibleServer } from '../checks.ts'

type Shown = Awaited<ReturnType<UserValues['describe']>>
type Given = Awaited<ReturnType<UserValues['list']>>
type AddChange = (by: Author, change: AuditedChange) => void

/** The values that users set for servers (`userVariables`), for callers of the management API. */
export class OwnVariables {
  readonly #settings: Settings
  readonly #values: UserValues
  readonly #addChange: AddChange

  constructor (settings: Settings, values: UserValues, addChange: AddChange) {
    this.#settings = settings
    this.#values = values
    this.#addChange = addChange
  }

  /** Checks that the principal is a user and may use a server. @throws NoSuch, Forbidden */
  mustBeUser (principal: Principal, name: string): void { this.#of(principal, name) }

  /** Returns the variables of a server, and which of them the principal has set. @throws NoSuch, Forbidden */
  async get (principal: Principal, name: string): Promise<Shown> {
    const { server, user } = this.#of(principal, name)
    return await this.#values.describe(server, user)
  }

  /**
   * Sets values of the principal; null removes one, and others are kept.
   * @returns the variables, and a message
   * @throws NoSuch, Forbidden, InvalidInput
   */
  async give (
    principal: Principal, name: string, values: Readonly<Record<string, string | null>>
  ): Promise<{ data: Shown, message: string }> {
    const { server, user } = this.#of(principal, name)
    const missing = await this.#values.give(server, user, values)
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
    const { server, user } = this.#of(principal, name)
    const existed = await this.#values.forget(server, user)
    if (existed) this.#addChange(toAuthor(principal), { entity: 'values', name, before: { server: name, user } })
    return existed
  }

  /**
   * Returns the users who set values for a server that the principal manages, with the names of these values.
   * @throws NoSuch, Forbidden
   */
  async list (principal: Principal, name: string): Promise<Given> {
    return await this.#values.list(managedServer(this.#settings.current, principal, name))
  }

  #of (principal: Principal, name: string): { server: Server, user: string } {
    const { current } = this.#settings
    const server = visibleServer(current, principal, name)
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

/** `app.ownVariables`: the values that users set for servers. */
export default fp(async (app) => {
  app.decorate('ownVariables', new OwnVariables(app.settings, app.userValues, (...change) => {
    app.audit.addChange(...change)
  }))
}, { name: 'own-variables', dependencies: ['settings', 'audit', 'user-values'] })
