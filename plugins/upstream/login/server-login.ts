import { UpstreamError } from '../../../protocol/errors.ts'
import type { AuthorizationSource, Challenge } from '../../../protocol/transports/authorization.ts'
import { BoundedMap } from '../../base/limits/index.ts'
import { parseChallenge, type BearerChallenge } from './challenge.ts'
import { Flows, type FlowDeps, type LoginTarget, type Need } from './flows.ts'
import { HeldLogins, type Held } from './held-logins.ts'
import { failureOf, LoginRequired, type Flow, type Who } from './problems.ts'
import { bearer, isDue, type ServerLoginRecord } from './stored.ts'
import { revoke } from './token-requests.ts'
import { upstreamLimits } from '../limits.ts'

/** The holder of a login that all clients of a server share. */
const sharedHolder = 'shared'
/** The holder of a user's login. @param user as links are told apart under `isolation: user` */
export const holderOf = (user: string): string => `user ${user}`
/** Callers without credentials are one "user", which has no login. */
const nobody = holderOf('anonymous')

export interface LoginListener {
  /** A holder has logged in, here or on another replica. */
  ready: (holder: string) => void
  /** A holder's login is over: logged out, or refused by the upstream. */
  ended: (holder: string) => void
}

/**
 * The logins at one server: one that its clients share, or one of each user. Gives its transports their header,
 * refreshes tokens before they expire, and says what to open where a login is needed.
 */
export class ServerLogin {
  readonly deps: FlowDeps
  readonly flows: Flows
  readonly #held: HeldLogins
  /** What is needed, by the holder who has to log in. */
  readonly #wanted = new BoundedMap<string, Need>(upstreamLimits.login.holders)
  /** The last challenge of the server; undefined: it asked for no login. */
  #challenge: BearerChallenge | undefined
  readonly #listener: LoginListener
  readonly #isOwn: boolean

  constructor (deps: FlowDeps, listener: LoginListener) {
    this.deps = deps
    this.flows = new Flows(deps)
    this.#held = new HeldLogins(deps, this.flows)
    this.#listener = listener
    this.#isOwn = deps.target.oauth.grantType === 'client_credentials'
  }

  /** Logins are in use: changes of other replicas are looked for. */
  get active (): boolean { return this.#held.size > 0 }

  /** @param user as links are told apart; undefined: the gateway's link */
  authorization (user: string | undefined): AuthorizationSource {
    const holder = this.holder(user)
    return {
      header: () => holder === undefined ? undefined : this.#header(holder),
      refused: async (challenge) => await this.#refused(holder, challenge)
    }
  }

  /** The holder of the login of a link or a caller; undefined: none, since each user has a login. */
  holder (user: string | undefined): string | undefined {
    if (!this.deps.target.perUser || this.#isOwn) return sharedHolder
    return user === undefined ? undefined : holderOf(user)
  }

  /** What a holder has to open. @returns undefined: no login is known to be missing */
  required (holder: string): { readonly flow: Flow | undefined } | undefined {
    return this.#wanted.has(holder) ? { flow: this.flows.current(holder) } : undefined
  }

  /** The error for a client of a holder who has to log in; undefined: no login is known to be missing. */
  refusal (holder: string | undefined): LoginRequired | undefined {
    if (holder === undefined || !this.#wanted.has(holder)) return undefined
    // Another request is begun if this one has ended on another replica.
    void this.prepare(holder)
    return this.#toError(holder, this.flows.current(holder))
  }

  /** Makes sure that there is an address for a holder who needs one. Never throws: the next look tries again. */
  async prepare (holder: string): Promise<void> {
    if (holder === nobody || this.#isOwn || this.#challenge === undefined) return
    try {
      const held = await this.#held.get(holder)
      if (!held && !this.#wanted.has(holder)) this.#wanted.set(holder, { challenge: this.#challenge })
      const need = this.#wanted.get(holder)
      if (need) await this.flows.begin(holder, need)
    } catch {}
  }

  /** Stores a new login. @throws StorageError */
  async enter (holder: string, login: ServerLoginRecord): Promise<void> {
    const { stores: { tokens }, target: { server } } = this.deps
    const version = await tokens.swap(server, holder, 'any', login)
    this.#ready(holder, { version, login })
  }

  /** Ends a holder's login, here and at the authorization server. @returns whether there was one */
  async leave (holder: string): Promise<boolean> {
    const held = await this.#held.get(holder)
    const { stores: { tokens }, target: { server } } = this.deps
    await tokens.remove(server, holder)
    this.#end(holder)
    if (holder === sharedHolder) await this.flows.forget()
    if (held) await revoke(held.login, this.#requests).catch(() => {})
    return held !== null
  }

  /** The account of a holder is gone or was replaced: its login is forgotten, and its links end. */
  forget (holder: string): void {
    this.#wanted.delete(holder)
    this.flows.end(holder)
    if (this.#held.peek(holder)) this.#end(holder)
  }

  /** Another replica has stored or removed a login. */
  async changed (holder: string, version: string | undefined): Promise<void> {
    const held = this.#held.peek(holder)
    const isKnown = held !== undefined || this.#wanted.has(holder)
    if (!isKnown || held?.version === version || this.#held.isRenewing(holder)) return
    this.#held.forget(holder)
    const now = await this.#held.get(holder)
    if (now) this.#ready(holder, now)
    else if (held) this.#end(holder)
  }

  get #requests (): { oauth: LoginTarget['oauth'], fetchFn: ReturnType<FlowDeps['makeFetch']> } {
    return { oauth: this.deps.target.oauth, fetchFn: this.deps.makeFetch() }
  }

  #header (holder: string): string | undefined | Promise<string | undefined> {
    const held = this.#held.peek(holder)
    if (held && !isDue(held.login)) return bearer(held.login)
    if (held === null && !this.#isOwn) return undefined
    return this.#fresh(holder)
  }

  async #fresh (holder: string): Promise<string | undefined> {
    const held = await this.#held.get(holder)
    if (!held) return this.#isOwn && this.#challenge ? this.#headerOf(await this.#renew(holder, null)) : undefined
    if (!isDue(held.login)) return bearer(held.login)
    try {
      return this.#headerOf(await this.#renew(holder, held))
    } catch (error) {
      // The authorization server is away; the token may still be valid.
      if ((held.login.expiresAt ?? Infinity) > Date.now()) return bearer(held.login)
      throw error
    }
  }

  #headerOf (held: Held | null): string | undefined { return held ? bearer(held.login) : undefined }

  async #refused (holder: string | undefined, { status, wwwAuthenticate, sent, again }: Challenge): Promise<boolean> {
    const challenge = parseChallenge(wwwAuthenticate)
    this.#challenge = status === 401 ? challenge : this.#challenge ?? challenge
    if (holder === undefined || holder === nobody) throw this.#toError(holder, undefined)
    const held = await this.#held.get(holder)
    if (held && sent !== bearer(held.login)) {
      // Another request has got a new token meanwhile.
      if (!again) return true
      throw new UpstreamError('unauthorized', 'its login has changed just now: try again', { isPublic: true })
    }
    if (status === 403) return await this.#stepUp(holder, held, challenge)
    const canRenew = this.#isOwn || held?.login.refreshToken !== undefined
    if (canRenew && !again && await this.#renew(holder, held)) return true
    if (this.#isOwn) {
      throw new UpstreamError('unauthorized', 'the upstream refuses the token that its authorization server gave ' +
        '(HTTP 401)')
    }
    if (held) await this.#held.drop(holder, held)
    return await this.#require(holder, { challenge })
  }

  /** The login lacks a scope (MCP 2025-11-25, Authorization, "Step-Up Authorization Flow"), which is asked for once. */
  async #stepUp (holder: string, held: Held | null, challenge: BearerChallenge): Promise<boolean> {
    const { scopes: missing = [] } = challenge
    const { scopes: former = [] } = held?.login ?? {}
    if (held && missing.every((scope) => former.includes(scope))) {
      const which = missing.length === 0 ? 'names none' : `wants ${missing.join(' ')}, which the login has asked for`
      throw new UpstreamError('unauthorized', 'the upstream refuses the request for want of a scope (HTTP 403), and ' +
        `${which}`)
    }
    if (!this.#isOwn) return await this.#require(holder, { challenge, former })
    return await this.#renew(holder, held, [...former, ...missing]) !== null
  }

  /** @throws LoginRequired with the address to open, UpstreamError where there is no way to log in */
  async #require (holder: string, need: Need): Promise<never> {
    this.#wanted.set(holder, need)
    let flow: Flow
    try {
      flow = await this.flows.begin(holder, need)
    } catch (error) {
      throw failureOf(error, 'the login')
    } finally {
      // Links end after the request has failed with what is needed.
      if (this.#held.takeDropped(holder)) setImmediate(() => { this.#listener.ended(holder) })
    }
    throw this.#toError(holder, flow)
  }

  #toError (holder: string | undefined, flow: Flow | undefined): LoginRequired {
    const who: Who = holder === undefined || holder === nobody ? 'nobody' : holder === sharedHolder ? 'manager' : 'user'
    const message = who === 'manager'
      ? 'the upstream wants a login: open oauth.authorizationUrl'
      : 'the upstream wants a login of each user: each opens the oauth.authorizationUrl that the server\'s record ' +
        'shows to him'
    return new LoginRequired(who, flow, message)
  }

  async #renew (holder: string, held: Held | null, scopes?: readonly string[]): Promise<Held | null> {
    return await this.#held.renew(holder, held, this.#challenge ?? {}, scopes)
  }

  #ready (holder: string, held: Held): void {
    this.#held.set(holder, held)
    this.#wanted.delete(holder)
    this.flows.end(holder)
    this.#listener.ready(holder)
  }

  #end (holder: string): void {
    this.#held.set(holder, null)
    this.#listener.ended(holder)
  }
}
