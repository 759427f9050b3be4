import { UpstreamError } from '../../../protocol/errors.ts'
import type { Authorization, Challenge } from '../../../protocol/transports/authorization.ts'
import { BoundedMap } from '../../limits/bounded-map.ts'
import { limits } from '../../limits/index.ts'
import { parseChallenge, type BearerChallenge } from './challenge.ts'
import { clientHolder, Flows, type FlowDeps, type Need } from './flows.ts'
import { codeOf, failureOf, LoginRequired, type Flow, type Who } from './problems.ts'
import { asLogin, bearer, isDue, type Login } from './stored.ts'
import { clientCredentials, refresh, revoke } from './token-requests.ts'

/** The holder of a login that all clients of a server share. */
export const sharedHolder = 'shared'
/** The holder of a user's own login, by what separates links under `isolation: user`. */
export const holderOf = (user: string): string => `user ${user}`
/** Callers without credentials are all one "user": none of them has a login. */
const nobody = holderOf('anonymous')

export interface ServerLoginDeps extends FlowDeps {
  /** Each user logs in for himself. */
  readonly perUser: boolean
}

/** Hears of the logins of a server. */
export interface LoginListener {
  /** A holder has logged in, here or on another replica. */
  ready: (holder: string) => void
  /** A holder's login is over: logged out, or refused by the upstream. */
  ended: (holder: string) => void
}

/** A login in memory. `version` undefined: it is stored nowhere. */
interface Held { readonly version: string | undefined, readonly login: Login }

/** How long a replica has the right to refresh a login, in ms; beyond, another one tries. */
const claimTime = 30_000
/** The pause between two looks whether another replica has refreshed it, in ms. */
const claimPause = 100

/**
 * The logins at one server: one that its clients share, or one of each user. Gives its transports their header, refreshes tokens before
 * they expire, and says what to open where a login is needed.
 */
export class ServerLogin {
  readonly deps: ServerLoginDeps
  readonly flows: Flows
  /** null: there is none. */
  readonly #held = new BoundedMap<string, Held | null>(limits.login.holders)
  readonly #loading = new Map<string, Promise<Held | null>>()
  readonly #renewing = new Map<string, Promise<Held | null>>()
  /** The needs of those who have to log in, by holder. */
  readonly #wanted = new BoundedMap<string, Need>(limits.login.holders)
  /** Holders whose login turned out to be of no use; their links end once it is said what is needed. */
  readonly #dropped = new Set<string>()
  /** The server asked for a login. */
  #challenge: BearerChallenge | undefined
  readonly #listener: LoginListener
  readonly #isOwn: boolean

  constructor (deps: ServerLoginDeps, listener: LoginListener) {
    this.deps = deps
    this.flows = new Flows(deps)
    this.#listener = listener
    this.#isOwn = deps.oauth.grantType === 'client_credentials'
  }

  /** True once logins matter here: changes on other replicas are looked for. */
  get active (): boolean { return this.#held.size > 0 }

  /** @param user what separates the link's clients; undefined: the gateway's own link */
  authorization (user: string | undefined): Authorization {
    const holder = this.holder(user)
    return {
      header: () => holder === undefined ? undefined : this.#header(holder),
      refused: async (challenge) => await this.#refused(holder, challenge)
    }
  }

  /** Who holds the login of a link or a caller; undefined: nobody does, for each user has an own one. */
  holder (user: string | undefined): string | undefined {
    if (!this.deps.perUser || this.#isOwn) return sharedHolder
    return user === undefined ? undefined : holderOf(user)
  }

  /** What a holder has to do, as far as is known. @returns undefined: nothing */
  required (holder: string): { readonly flow: Flow | undefined } | undefined {
    return this.#wanted.has(holder) ? { flow: this.flows.current(holder) } : undefined
  }

  /** The error for a client of a holder who has to log in; undefined: nothing is known to be in the way. */
  refusal (holder: string | undefined): LoginRequired | undefined {
    if (holder === undefined || !this.#wanted.has(holder)) return undefined
    return this.#toError(holder, this.flows.current(holder))
  }

  /** Makes sure that the address for a holder is there, where one is needed. Never throws: without one, the next look tries again. */
  async prepare (holder: string): Promise<void> {
    if (holder === nobody || this.#isOwn || this.#challenge === undefined) return
    try {
      const held = await this.#get(holder)
      if (!held && !this.#wanted.has(holder)) this.#wanted.set(holder, { challenge: this.#challenge })
      const need = this.#wanted.get(holder)
      if (need) await this.flows.begin(holder, need)
    } catch {}
  }

  /** Stores a login that has just begun. @throws StorageError */
  async enter (holder: string, login: Login): Promise<void> {
    const { tokens, server } = this.deps
    const version = await tokens.swap(server, holder, 'any', login)
    this.#ready(holder, { version, login })
  }

  /** Ends a holder's login, here and at the authorization server. @returns whether there was one */
  async leave (holder: string): Promise<boolean> {
    const held = await this.#get(holder)
    await this.deps.tokens.remove(this.deps.server, holder)
    this.#end(holder)
    if (holder === sharedHolder) await this.flows.forget()
    if (held) await revoke(held.login, this.#requests).catch(() => {})
    return held !== null
  }

  /** Another replica has stored or removed something. */
  async changed (holder: string, version: string | undefined): Promise<void> {
    const held = this.#held.get(holder)
    const isKnown = held !== undefined || this.#wanted.has(holder)
    if (!isKnown || held?.version === version || this.#renewing.has(holder)) return
    this.#held.delete(holder)
    const now = await this.#get(holder)
    if (now) this.#ready(holder, now)
    else if (held) this.#end(holder)
  }

  get #requests (): { oauth: FlowDeps['oauth'], fetchFn: ReturnType<FlowDeps['makeFetch']> } {
    return { oauth: this.deps.oauth, fetchFn: this.deps.makeFetch() }
  }

  #header (holder: string): string | undefined | Promise<string | undefined> {
    const held = this.#held.get(holder)
    if (held && !isDue(held.login)) return bearer(held.login)
    if (held === null && !this.#isOwn) return undefined
    return this.#fresh(holder)
  }

  async #fresh (holder: string): Promise<string | undefined> {
    const held = await this.#get(holder)
    if (!held) return this.#isOwn && this.#challenge ? this.#headerOf(await this.#renew(holder, null)) : undefined
    if (!isDue(held.login)) return bearer(held.login)
    try {
      return this.#headerOf(await this.#renew(holder, held))
    } catch (error) {
      // The authorization server is away; the token may still be good.
      if ((held.login.expiresAt ?? Infinity) > Date.now()) return bearer(held.login)
      throw error
    }
  }

  #headerOf (held: Held | null): string | undefined { return held ? bearer(held.login) : undefined }

  async #refused (holder: string | undefined, { status, wwwAuthenticate, sent, again }: Challenge): Promise<boolean> {
    const challenge = parseChallenge(wwwAuthenticate)
    this.#challenge = status === 401 ? challenge : this.#challenge ?? challenge
    if (holder === undefined || holder === nobody) throw this.#toError(holder, undefined)
    const held = await this.#get(holder)
    if (held && sent !== bearer(held.login)) {
      // Somebody else has got another token meanwhile.
      if (!again) return true
      throw new UpstreamError('unauthorized', 'its login has changed just now: try again', { isPublic: true })
    }
    if (status === 403) return await this.#stepUp(holder, held, challenge)
    const canRenew = this.#isOwn || held?.login.refreshToken !== undefined
    if (canRenew && !again && await this.#renew(holder, held)) return true
    if (this.#isOwn) {
      throw new UpstreamError('unauthorized', 'the upstream refuses the token that its authorization server gave (HTTP 401)')
    }
    if (held) await this.#drop(holder, held)
    return await this.#require(holder, { challenge })
  }

  /** The login lacks a scope (MCP 2025-11-25, Authorization, "Step-Up Authorization Flow"). It is asked for once. */
  async #stepUp (holder: string, held: Held | null, challenge: BearerChallenge): Promise<boolean> {
    const { scopes: missing = [] } = challenge
    const { scopes: former = [] } = held?.login ?? {}
    if (held && missing.every((scope) => former.includes(scope))) {
      const which = missing.length === 0 ? 'names none' : `wants ${missing.join(' ')}, which the login has asked for`
      throw new UpstreamError('unauthorized', `the upstream refuses the request for want of a scope (HTTP 403), and ${which}`)
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
      if (this.#dropped.delete(holder)) setImmediate(() => { this.#listener.ended(holder) })
    }
    throw this.#toError(holder, flow)
  }

  #toError (holder: string | undefined, flow: Flow | undefined): LoginRequired {
    const who: Who = holder === undefined || holder === nobody ? 'nobody' : holder === sharedHolder ? 'manager' : 'user'
    const message = who === 'manager'
      ? 'the upstream wants a login: open oauth.authorizationUrl'
      : 'the upstream wants a login of each user: each opens the oauth.authorizationUrl that the server\'s record shows to him'
    return new LoginRequired(who, flow, message)
  }

  /** The login of a holder, read once. */
  async #get (holder: string): Promise<Held | null> {
    const known = this.#held.get(holder)
    if (known !== undefined) return known
    const loading = this.#loading.get(holder) ?? this.#load(holder).finally(() => { this.#loading.delete(holder) })
    this.#loading.set(holder, loading)
    return await loading
  }

  async #load (holder: string): Promise<Held | null> {
    const { tokens, server, binding } = this.deps
    const stored = this.#isOwn ? undefined : await tokens.find(server, holder)
    const login = stored && asLogin(stored.value, binding(holder))
    const held = login ? { version: stored.version, login } : null
    // One that has logged in meanwhile is newer than what was read.
    if (this.#held.get(holder) === undefined) this.#held.setNewest(holder, held)
    return this.#held.get(holder) ?? null
  }

  /** Gets another token, once for all who wait for it. @returns null: the authorization server takes the login for ended */
  async #renew (holder: string, held: Held | null, scopes?: readonly string[]): Promise<Held | null> {
    const renew = async (): Promise<Held | null> =>
      this.#isOwn ? await this.#obtain(holder, scopes) : held && await this.#refresh(holder, held)
    const renewing = this.#renewing.get(holder) ?? renew().finally(() => { this.#renewing.delete(holder) })
    this.#renewing.set(holder, renewing)
    return await renewing
  }

  /** The gateway's own login, which is kept in memory only. */
  async #obtain (holder: string, scopes?: readonly string[]): Promise<Held> {
    const { oauth: { clientId = '', clientSecret }, binding } = this.deps
    const challenge = this.#challenge ?? {}
    try {
      const found = await this.flows.discovered(challenge)
      const client = { id: clientId, ...(clientSecret === undefined ? {} : { secret: clientSecret }) }
      const wanted = scopes ?? this.flows.scopes(found, { challenge })
      const login = await clientCredentials(found, { binding: binding(holder), client }, wanted, this.#requests)
      const held = { version: undefined, login }
      this.#held.setNewest(holder, held)
      return held
    } catch (error) {
      throw failureOf(error, 'the login with client_credentials')
    }
  }

  /** Refreshes a login; of several replicas one does, and the others wait for its result. */
  async #refresh (holder: string, held: Held): Promise<Held | null> {
    const { tokens, server, binding } = this.deps
    const { version = '' } = held
    for (const end = Date.now() + claimTime; !await tokens.claim(server, holder, version, claimTime);) {
      const stored = await tokens.find(server, holder)
      if (stored?.version !== version) return this.#hold(holder, stored?.version, asLogin(stored?.value, binding(holder)))
      if (Date.now() > end) throw new UpstreamError('timeout', 'another replica refreshes its login, and has not finished in time')
      await new Promise((resolve) => { setTimeout(resolve, claimPause) })
    }
    try {
      const login = await refresh(held.login, this.#requests)
      const next = await tokens.swap(server, holder, { version }, login)
      if (next !== undefined) return this.#hold(holder, next, login)
      // It was logged out, or in again, meanwhile.
      const stored = await tokens.find(server, holder)
      return this.#hold(holder, stored?.version, asLogin(stored?.value, binding(holder)))
    } catch (error) {
      const refused = codeOf(error)
      if (refused === 'invalid_client' || refused === 'unauthorized_client') await tokens.remove(server, clientHolder)
      else if (refused !== 'invalid_grant') throw failureOf(error, 'refreshing the login')
      await this.#drop(holder, held)
      return null
    }
  }

  #hold (holder: string, version: string | undefined, login: Login | undefined): Held | null {
    const held = login ? { version, login } : null
    this.#held.setNewest(holder, held)
    return held
  }

  /** Removes a login that is of no use any more, unless another one is stored meanwhile. */
  async #drop (holder: string, { version, login }: Held): Promise<void> {
    const { tokens, server } = this.deps
    if (this.#held.get(holder)?.login !== login) return
    const stored = await tokens.find(server, holder)
    if (stored?.version === version) await tokens.remove(server, holder)
    this.#held.setNewest(holder, null)
    this.#dropped.add(holder)
  }

  #ready (holder: string, held: Held): void {
    this.#held.setNewest(holder, held)
    this.#wanted.delete(holder)
    this.flows.end(holder)
    this.#listener.ready(holder)
  }

  #end (holder: string): void {
    this.#held.setNewest(holder, null)
    this.#listener.ended(holder)
  }
}
