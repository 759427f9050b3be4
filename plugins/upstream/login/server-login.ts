import { UpstreamError } from '../../../protocol/errors.ts'
import type { AuthorizationSource, Challenge } from '../../../protocol/transports/authorization.ts'
import { BoundedMap } from '../../base/limits/index.ts'
import { parseChallenge, type BearerChallenge } from './challenge.ts'
import { LoginFlows, type ServerLoginDeps, type LoginNeed } from './flows.ts'
import { LoginCache, type CachedLogin } from './login-cache.ts'
import { authorizationFailure, UserActionRequired, type LoginFlow, type LoginActor } from './problems.ts'
import { bearerHeader, needsRefresh, type ServerLoginRecord } from './stored.ts'
import { revokeTokens } from './token-requests.ts'
import { upstreamLimits } from '../limits.ts'

/** The holder of a login that all clients of a server share. */
const sharedHolder = 'shared'
/** The holder of a user's login. @param user as in `isolation: user` */
export const holderOf = (user: string): string => `user ${user}`
/** All unauthenticated callers are one "user", which has no login. */
const anonymousHolder = holderOf('anonymous')

export interface LoginListener {
  /** Called when a holder has logged in, here or on another replica. */
  onReady: (holder: string) => void
  /** Called when a holder's login has ended: by a logout, or because the upstream refused it. */
  onEnded: (holder: string) => void
}

/**
 * The logins at one server: one that its clients share, or one per user. Supplies transports with the authorization
 * header, refreshes tokens before they expire, and provides the URL to open when a login is needed.
 */
export class ServerLogin {
  readonly deps: ServerLoginDeps
  readonly flows: LoginFlows
  readonly #cache: LoginCache
  /** The logins that are required but missing, by holder. */
  readonly #missing = new BoundedMap<string, LoginNeed>(upstreamLimits.login.holders)
  /** The last challenge of the server; undefined while it has required no login. */
  #challenge: BearerChallenge | undefined
  readonly #listener: LoginListener

  constructor (deps: ServerLoginDeps, listener: LoginListener) {
    this.deps = deps
    this.flows = new LoginFlows(deps)
    this.#cache = new LoginCache(deps, this.flows)
    this.#listener = listener
  }

  /** Whether logins are in use, so that changes by other replicas are looked up. */
  get isActive (): boolean { return this.#cache.size > 0 }

  /** The source of the header for a link. @param user the user of the link; undefined for the gateway's link */
  authorization (user: string | undefined): AuthorizationSource {
    const holder = this.holder(user)
    return {
      header: () => holder === undefined ? undefined : this.#header(holder),
      refused: async (challenge) => await this.#refused(holder, challenge)
    }
  }

  /** The holder of the login that a link or a caller uses; undefined if each user has a login, and there is no user. */
  holder (user: string | undefined): string | undefined {
    if (!this.deps.target.isPerUser || this.#cache.usesClientCredentials) return sharedHolder
    return user === undefined ? undefined : holderOf(user)
  }

  /** The flow that a holder must complete. @returns undefined if no login is known to be missing */
  pendingLogin (holder: string): { readonly flow: LoginFlow | undefined } | undefined {
    return this.#missing.has(holder) ? { flow: this.flows.current(holder) } : undefined
  }

  /** The error for a client whose holder must log in; undefined if no login is known to be missing. */
  refusal (holder: string | undefined): UserActionRequired | undefined {
    if (holder === undefined || !this.#missing.has(holder)) return undefined
    // A new request is begun if this one was ended on another replica.
    void this.prepare(holder)
    return this.#toError(holder, this.flows.current(holder))
  }

  /** Ensures that there is a URL for a holder who must log in. Never throws: the next look-up tries again. */
  async prepare (holder: string): Promise<void> {
    if (holder === anonymousHolder || this.#cache.usesClientCredentials || this.#challenge === undefined) return
    try {
      const held = await this.#cache.get(holder)
      if (!held && !this.#missing.has(holder)) this.#missing.set(holder, { challenge: this.#challenge })
      const need = this.#missing.get(holder)
      if (need) await this.flows.begin(holder, need)
    } catch {}
  }

  /** Stores a new login. @throws StorageError */
  async storeLogin (holder: string, login: ServerLoginRecord): Promise<void> {
    const { stores: { tokens }, target: { server } } = this.deps
    const version = await tokens.swap(server, holder, 'any', login)
    this.#ready(holder, { version, login })
  }

  /** Ends a holder's login, here and at the authorization server. @returns whether there was one */
  async endLogin (holder: string): Promise<boolean> {
    const held = await this.#cache.get(holder)
    const { stores: { tokens }, target: { server } } = this.deps
    await tokens.remove(server, holder)
    this.#end(holder)
    if (holder === sharedHolder) await this.flows.forget()
    if (held) await revokeTokens(held.login, this.#cache.tokenRequestDeps).catch(() => {})
    return held !== null
  }

  /** Forgets the login of a holder whose account was removed or replaced, and closes its links. */
  forget (holder: string): void {
    this.#missing.delete(holder)
    this.flows.end(holder)
    if (this.#cache.peek(holder)) this.#end(holder)
  }

  /** Handles a login that another replica has stored or removed. */
  async onChanged (holder: string, version: string | undefined): Promise<void> {
    const held = this.#cache.peek(holder)
    const isKnown = held !== undefined || this.#missing.has(holder)
    if (!isKnown || held?.version === version || this.#cache.isRenewing(holder)) return
    this.#cache.forget(holder)
    const now = await this.#cache.get(holder)
    if (now) this.#ready(holder, now)
    else if (held) this.#end(holder)
  }

  #header (holder: string): string | undefined | Promise<string | undefined> {
    const held = this.#cache.peek(holder)
    if (held && !needsRefresh(held.login)) return bearerHeader(held.login)
    if (held === null && !this.#cache.usesClientCredentials) return undefined
    return this.#fresh(holder)
  }

  async #fresh (holder: string): Promise<string | undefined> {
    const held = await this.#cache.get(holder)
    if (!held) {
      if (!this.#cache.usesClientCredentials || !this.#challenge) return undefined
      return this.#headerOf(await this.#renew(holder, null))
    }
    if (!needsRefresh(held.login)) return bearerHeader(held.login)
    try {
      return this.#headerOf(await this.#renew(holder, held))
    } catch (error) {
      // The authorization server is unavailable; the token may still be valid.
      if ((held.login.expiresAt ?? Infinity) > Date.now()) return bearerHeader(held.login)
      throw error
    }
  }

  #headerOf (held: CachedLogin | null): string | undefined { return held ? bearerHeader(held.login) : undefined }

  async #refused (
    holder: string | undefined, { status, wwwAuthenticate, sentAuthorization, isRetry }: Challenge
  ): Promise<boolean> {
    const challenge = parseChallenge(wwwAuthenticate)
    this.#challenge = status === 401 ? challenge : this.#challenge ?? challenge
    if (holder === undefined || holder === anonymousHolder) throw this.#toError(holder, undefined)
    const held = await this.#cache.get(holder)
    if (held && sentAuthorization !== bearerHeader(held.login)) {
      // Another request has obtained a new token in the meantime.
      if (!isRetry) return true
      throw new UpstreamError('unauthorized', 'its login has just changed: try again', { isPublic: true })
    }
    if (status === 403) return await this.#stepUp(holder, held, challenge)
    const canRenew = this.#cache.usesClientCredentials || held?.login.refreshToken !== undefined
    if (canRenew && !isRetry && await this.#renew(holder, held)) return true
    if (this.#cache.usesClientCredentials) {
      throw new UpstreamError(
        'unauthorized', 'the upstream rejected the token that its authorization server issued (HTTP 401)'
      )
    }
    if (held) await this.#cache.drop(holder, held)
    return await this.#require(holder, { challenge })
  }

  /** Requests a missing scope, once (MCP 2025-11-25, Authorization, "Step-Up Authorization Flow"). */
  async #stepUp (holder: string, held: CachedLogin | null, challenge: BearerChallenge): Promise<boolean> {
    const { scopes: missing = [] } = challenge
    const { scopes: former = [] } = held?.login ?? {}
    if (held && missing.every((scope) => former.includes(scope))) {
      const which = missing.length === 0
        ? 'does not name it'
        : `requires ${missing.join(' ')}, which the login ` +
          'already requested'
      throw new UpstreamError(
        'unauthorized', `the upstream refuses the request because of a missing scope (HTTP 403), and ${which}`
      )
    }
    if (!this.#cache.usesClientCredentials) return await this.#require(holder, { challenge, former })
    return await this.#renew(holder, held, [...former, ...missing]) !== null
  }

  /**
   * Records that a holder must log in.
   * @throws UserActionRequired with the URL to open, UpstreamError when there is no way to log in
   */
  async #require (holder: string, need: LoginNeed): Promise<never> {
    this.#missing.set(holder, need)
    let flow: LoginFlow
    try {
      flow = await this.flows.begin(holder, need)
    } catch (error) {
      throw authorizationFailure(error, 'the login')
    } finally {
      // Links are closed after the request has failed with the error that states the needed action.
      if (this.#cache.takeDropped(holder)) setImmediate(() => { this.#listener.onEnded(holder) })
    }
    throw this.#toError(holder, flow)
  }

  #toError (holder: string | undefined, flow: LoginFlow | undefined): UserActionRequired {
    const who: LoginActor = holder === undefined || holder === anonymousHolder
      ? 'nobody'
      : holder === sharedHolder ? 'manager' : 'user'
    const message = who === 'manager'
      ? 'the upstream requires a login: open oauth.authorizationUrl'
      : 'the upstream requires a login of each user: each opens the oauth.authorizationUrl in the server\'s record, ' +
        'as shown to that user'
    return new UserActionRequired('login', who, flow, message)
  }

  async #renew (holder: string, held: CachedLogin | null, scopes?: readonly string[]): Promise<CachedLogin | null> {
    return await this.#cache.renew(holder, held, this.#challenge ?? {}, scopes)
  }

  #ready (holder: string, held: CachedLogin): void {
    this.#cache.set(holder, held)
    this.#missing.delete(holder)
    this.flows.end(holder)
    this.#listener.onReady(holder)
  }

  #end (holder: string): void {
    this.#cache.set(holder, null)
    this.#listener.onEnded(holder)
  }
}
