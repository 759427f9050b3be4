import { StorageError } from '../../../db/store.ts'
import { UpstreamError } from '../../../protocol/errors.ts'
import type { AuthorizationSource, Challenge } from '../../../protocol/transports/authorization.ts'
import { BoundedMap } from '../../base/limits/index.ts'
import { parseChallenge, type BearerChallenge } from './challenge.ts'
import { LoginFlows, type ServerLoginDeps, type LoginNeed, type SavedFlow } from './flows.ts'
import { LoginCache, type CachedLogin } from './login-cache.ts'
import { authorizationFailure, UserActionRequired, type PendingLogin, type RequiredActor } from './problems.ts'
import { bearerHeader, needsRefresh, type ServerLoginRecord } from './stored.ts'
import { revokeTokens } from './token-requests.ts'
import { upstreamLimits } from '../limits.ts'

/** The holder of a login that all clients of a server share. */
const sharedHolder = 'shared'
/** Returns the holder of a user's login. @param user `Client.user`: a username, `key <id>`, or `anonymous` */
export const holderOf = (user: string): string => `user ${user}`
/** Returns the user of a holder; undefined for the shared login. */
export const userOfHolder = (holder: string): string | undefined =>
  holder === sharedHolder ? undefined : holder.slice(holderOf('').length)
/** The holder that all unauthenticated callers have in common. It cannot log in. */
const anonymousHolder = holderOf('anonymous')

/** Receives the events of the logins at one server. */
export interface LoginListener {
  /** Called when a holder has logged in, here or on another replica. */
  onReady: (holder: string) => void
  /** Called when a holder's login has ended: by a logout, or because the upstream refused it. */
  onEnded: (holder: string) => void
}

/**
 * The OAuth logins at one server: one that its clients share, or one per user. Supplies transports with the
 * `Authorization` header, refreshes tokens before they expire, and provides the URL to open if a login is needed.
 */
export class ServerLogin {
  readonly deps: ServerLoginDeps
  readonly flows: LoginFlows
  readonly #cache: LoginCache
  /** The reasons why logins are required, by the holders who lack one. */
  readonly #missing = new BoundedMap<string, LoginNeed>(upstreamLimits.login.holders)
  /** The last challenge of the server; undefined if it has not required a login yet. */
  #challenge: BearerChallenge | undefined
  readonly #listener: LoginListener

  constructor (deps: ServerLoginDeps, listener: LoginListener) {
    this.deps = deps
    this.flows = new LoginFlows(deps)
    this.#cache = new LoginCache(deps, this.flows)
    this.#listener = listener
  }

  /** Whether any login was looked up, so that changes by other replicas matter. */
  get isActive (): boolean { return this.#cache.size > 0 }

  /** Returns the source of a link's `Authorization` header. @param user the link's user; undefined for the gateway */
  authorization (user: string | undefined): AuthorizationSource {
    const holder = this.holder(user)
    return {
      header: () => holder === undefined ? undefined : this.#header(holder),
      refused: async (challenge) => await this.#refused(holder, challenge).catch(throwAsUpstreamError)
    }
  }

  /**
   * Returns the holder of the login that a link or caller uses; undefined if logins are per user and there is no user.
   */
  holder (user: string | undefined): string | undefined {
    if (!this.deps.target.isPerUser || this.#cache.usesClientCredentials) return sharedHolder
    return user === undefined ? undefined : holderOf(user)
  }

  /** Whether an authorization request that was begun earlier still fits the server, the account and the isolation. */
  accepts ({ holder, frame }: Pick<SavedFlow, 'holder' | 'frame'>): boolean {
    return this.deps.binding(holder) === frame.binding && this.holder(userOfHolder(holder)) === holder
  }

  /**
   * Returns the authorization request that a holder must complete (`flow`: undefined if none is open).
   * @returns undefined if the holder is not known to lack a login
   */
  pendingLogin (holder: string): { readonly flow: PendingLogin | undefined } | undefined {
    return this.#missing.has(holder) ? { flow: this.flows.current(holder) } : undefined
  }

  /**
   * Returns the error for a client whose holder must log in; undefined if no login is known to be missing. Begins a new
   * authorization request if there is no recent one.
   */
  refusal (holder: string | undefined): UserActionRequired | undefined {
    if (holder === undefined || !this.#missing.has(holder)) return undefined
    // Another replica may have ended the current authorization request.
    void this.prepare(holder)
    return this.#toError(holder, this.flows.current(holder))
  }

  /** Ensures that there is a login URL for a holder who must log in. Ignores errors: the next call tries again. */
  async prepare (holder: string): Promise<void> {
    if (holder === anonymousHolder || this.#cache.usesClientCredentials || this.#challenge === undefined) return
    try {
      const held = await this.#cache.get(holder)
      if (!held && !this.#missing.has(holder)) this.#missing.set(holder, { challenge: this.#challenge })
      const need = this.#missing.get(holder)
      if (need) await this.flows.begin(holder, need)
    } catch {}
  }

  /** Stores a new login of a holder, replacing the former one. @throws StorageError */
  async storeLogin (holder: string, login: ServerLoginRecord): Promise<void> {
    const { stores: { tokens }, target: { server } } = this.deps
    const version = await tokens.swap(server, holder, 'any', login)
    this.#ready(holder, { version, login })
  }

  /** Removes a holder's login, and revokes its token at the authorization server. @returns whether there was one */
  async endLogin (holder: string): Promise<boolean> {
    const held = await this.#cache.get(holder)
    const { stores: { tokens }, target: { server } } = this.deps
    await tokens.remove(server, holder)
    this.#end(holder)
    if (holder === sharedHolder) await this.flows.forget()
    if (held) await revokeTokens(held.login, this.#cache.tokenRequestDeps).catch(() => {})
    return held !== null
  }

  /** Forgets, in memory, the login of a holder whose account was removed or replaced, and closes the holder's links. */
  forget (holder: string): void {
    this.#missing.delete(holder)
    this.flows.end(holder)
    if (this.#cache.peek(holder)) this.#end(holder)
  }

  /**
   * Handles a login that another replica has stored or removed.
   * @param version the stored version; undefined if removed
   */
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
    return this.#fresh(holder).catch(throwAsUpstreamError)
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
      // The token could not be refreshed, but is still valid.
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

  /**
   * Requests missing scopes (MCP 2025-11-25, Authorization, "Step-Up Authorization Flow").
   * @returns whether the refused request can be repeated
   * @throws UserActionRequired, or UpstreamError if the login has requested these scopes already
   */
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
   * Records that a holder must log in, and begins an authorization request.
   * @throws UserActionRequired with the URL to open, or UpstreamError if the request could not be begun
   */
  async #require (holder: string, need: LoginNeed): Promise<never> {
    this.#missing.set(holder, need)
    let flow: PendingLogin
    try {
      flow = await this.flows.begin(holder, need)
    } catch (error) {
      throw authorizationFailure(error, 'the login')
    } finally {
      // The links are closed later, so that the current request fails with the error that asks for a login.
      if (this.#cache.takeDropped(holder)) setImmediate(() => { this.#listener.onEnded(holder) })
    }
    throw this.#toError(holder, flow)
  }

  #toError (holder: string | undefined, flow: PendingLogin | undefined): UserActionRequired {
    const who: RequiredActor = holder === undefined || holder === anonymousHolder
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

/** Throws an error; a StorageError, which is not the fault of the server, becomes an UpstreamError that says so. */
function throwAsUpstreamError (error: unknown): never {
  if (!(error instanceof StorageError)) throw error
  throw new UpstreamError(
    'unauthorized', 'the storage of the gateway is unavailable, so the login there cannot be refreshed',
    { isPublic: true }
  )
}
