import { NonMcpClient, type Client } from '../../../protocol/exchange.ts'
import { chargedOwnerOf, type Principal } from '../../settings/index.ts'
import { errors } from '../../base/errors/index.ts'
import { BoundedMap, ShareError } from '../../base/limits/index.ts'

interface RestSession { readonly client: Client, readonly principal: Principal, lastUsed: number, open: number }

/**
 * The limits of sessions. `idle`: max time without a call, in ms. `maxSessions`: max number; beyond that, the least
 * recently used session without a running call ends. While three quarters of `maxSessions` are in use, an owner that
 * has a tenth of `maxSessions` loses its least recently used session without a running call for each new session.
 */
interface SessionBounds { readonly idle: number, readonly maxSessions: number }

/**
 * The sessions that plain HTTP callers identify by `x-session-id`. Calls of one principal with the same id share a link
 * at each server. The id is chosen by the caller and is not a credential: it is looked up together with the principal.
 */
export class RestSessions {
  /** The sessions by principal and id, least recently used first. */
  readonly #sessions: BoundedMap<string, RestSession>
  readonly #maxSessions: number
  /** Max time without a call, in ms. */
  readonly #idle: number
  readonly #release: (client: Client) => void
  readonly #sweeping: NodeJS.Timeout

  /** @param release releases the links of a session to servers */
  constructor ({ idle, maxSessions }: SessionBounds, release: (client: Client) => void) {
    this.#sessions = new BoundedMap(maxSessions, {
      isEvictable: (_name, { open }) => open === 0,
      onEvict: (_name, { client }) => { release(client) }
    })
    this.#maxSessions = maxSessions
    this.#idle = idle
    this.#release = release
    this.#sweeping = setInterval(() => { this.#sweep() }, 60_000).unref()
  }

  /**
   * Runs one call in the session with this id, or without a session if the id is undefined.
   * @throws InvalidInput for an invalid id; ShareError if the caller has used up its share, and calls run in all of its
   * sessions
   */
  async withSession<Result> (
    principal: Principal,
    address: string,
    id: string | string[] | undefined,
    run: (client: Client | undefined) => Promise<Result>
  ): Promise<Result> {
    if (id === undefined) return await run(undefined)
    if (typeof id !== 'string' || !/^[\x21-\x7e]{1,128}$/.test(id)) {
      throw new errors.InvalidInput('The header x-session-id must be 1 to 128 visible ASCII characters')
    }
    const session = this.#find(principal, address, id)
    session.open++
    try {
      return await run(session.client)
    } finally {
      session.open--
      session.lastUsed = Date.now()
    }
  }

  /** Ends the sessions whose principals have lost access. */
  revoke (hasAccess: (principal: Principal) => boolean): void {
    for (const [name, session] of this.#sessions) if (!hasAccess(session.principal)) this.#end(name, session)
  }

  close (): void { clearInterval(this.#sweeping) }

  #find (principal: Principal, address: string, id: string): RestSession {
    const { key, user } = principal
    const name = JSON.stringify([key, id])
    const known = this.#sessions.get(name)
    if (known) {
      this.#sessions.setNewest(name, known)
      return known
    }
    const owner = chargedOwnerOf(principal, address)
    this.#makeRoom(owner)
    const session = {
      client: new NonMcpClient(`rest ${name}`, user, key, true, owner), principal, lastUsed: Date.now(), open: 0
    }
    this.#sessions.set(name, session)
    return session
  }

  /** Ends an owner's oldest idle session if another one would exceed its share. @throws ShareError */
  #makeRoom (owner: string): void {
    if (this.#sessions.size < this.#maxSessions * 3 / 4) return
    const own = [...this.#sessions].filter(([, { client }]) => client.owner === owner)
    if (own.length < this.#maxSessions / 10) return
    const idle = own.find(([, { open }]) => open === 0)
    if (!idle) {
      throw new ShareError(
        'You have reached your share of sessions while the gateway is busy; end some calls first', true
      )
    }
    this.#end(...idle)
  }

  #sweep (): void {
    const before = Date.now() - this.#idle
    for (const [name, session] of this.#sessions) {
      if (session.open === 0 && session.lastUsed < before) this.#end(name, session)
    }
  }

  #end (name: string, { client }: RestSession): void {
    this.#sessions.delete(name)
    this.#release(client)
  }
}
