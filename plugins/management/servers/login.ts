import type { Server } from '../../../db/store.ts'
import { canManage, type Principal } from '../../settings/index.ts'
import type { Upstreams } from '../../upstream/index.ts'
import type { WantedLogin } from './present.ts'

/** The logins at servers, as those see them who ask the management API. */
export class ServerLogins {
  readonly #upstreams: Upstreams

  constructor (upstreams: Upstreams) {
    this.#upstreams = upstreams
  }

  /** The login that a server wants of a principal, as far as is known; undefined: none. */
  wanted (principal: Principal, server: Server): WantedLogin | undefined {
    const holder = this.#holder(principal, server)
    return holder === undefined ? undefined : this.#upstreams.get(server.name)?.login?.required(holder)
  }

  /** Makes the address of such a login. Never throws. */
  async prepare (principal: Principal, server: Server): Promise<void> {
    const holder = this.#holder(principal, server)
    if (holder !== undefined) await this.#upstreams.get(server.name)?.login?.prepare(holder)
  }

  /** @returns whether there was a login */
  async leave (principal: Principal, server: Server): Promise<boolean> {
    const holder = this.#holder(principal, server)
    return holder !== undefined && await this.#upstreams.get(server.name)?.login?.leave(holder) === true
  }

  /** Who holds the login that a principal may see and change; undefined: nobody does. */
  #holder (principal: Principal, server: Server): string | undefined {
    if (server.config.isolation !== 'user' && !canManage(principal, server)) return undefined
    // A system key without an owner has the rights of an admin on the management API, and its own name as a client.
    const user = principal.kind === 'system-key' && principal.user === 'system' ? principal.key : principal.user
    return this.#upstreams.get(server.name)?.login?.holder(user)
  }
}
