import { UpstreamError } from '../../../protocol/errors.ts'
import { BoundedMap } from '../../base/limits/index.ts'
import type { BearerChallenge } from './challenge.ts'
import { clientHolder, type FlowDeps, type Flows, type LoginTarget } from './flows.ts'
import { oauthCodeOf, failureOf } from './problems.ts'
import { asLogin, type ServerLoginRecord } from './stored.ts'
import { clientCredentials, refresh } from './token-requests.ts'
import { upstreamLimits } from '../limits.ts'

/** A login in memory. `version` undefined: it is not stored. */
export interface Held { readonly version: string | undefined, readonly login: ServerLoginRecord }

/** How long a replica has the right to refresh a login, in ms; beyond, another one tries. */
const claimTime = 30_000
/** Time between two checks whether another replica has refreshed it, in ms. */
const claimPause = 100

/**
 * The logins at one server that are in memory: read once, refreshed once for all who wait, and dropped when they are
 * refused.
 */
export class HeldLogins {
  readonly #deps: FlowDeps
  readonly #flows: Flows
  readonly #isOwn: boolean
  /** null: there is none. */
  readonly #held = new BoundedMap<string, Held | null>(upstreamLimits.login.holders)
  readonly #loading = new Map<string, Promise<Held | null>>()
  readonly #renewing = new Map<string, Promise<Held | null>>()
  /** Holders whose login was refused; their links end once the error says what is needed. */
  readonly #dropped = new Set<string>()

  constructor (deps: FlowDeps, flows: Flows) {
    this.#deps = deps
    this.#flows = flows
    this.#isOwn = deps.target.oauth.grantType === 'client_credentials'
  }

  get size (): number { return this.#held.size }

  /** What is in memory. @returns null: there is no login */
  peek (holder: string): Held | null | undefined { return this.#held.get(holder) }

  /** Keeps a login, unless the server or the account has changed since it was made. */
  set (holder: string, held: Held | null): Held | null {
    const kept = held?.login.binding === this.#deps.binding(holder) ? held : null
    this.#held.setNewest(holder, kept)
    return kept
  }

  forget (holder: string): void { this.#held.delete(holder) }

  isRenewing (holder: string): boolean { return this.#renewing.has(holder) }

  /** Whether a holder's login was dropped since the last call. */
  takeDropped (holder: string): boolean { return this.#dropped.delete(holder) }

  /** The login of a holder, read once. */
  async get (holder: string): Promise<Held | null> {
    const known = this.#held.get(holder)
    if (known !== undefined) return known
    const loading = this.#loading.get(holder) ?? this.#load(holder).finally(() => { this.#loading.delete(holder) })
    this.#loading.set(holder, loading)
    return await loading
  }

  async #load (holder: string): Promise<Held | null> {
    const { stores: { tokens }, target: { server }, binding } = this.#deps
    const stored = this.#isOwn ? undefined : await tokens.find(server, holder)
    const login = stored && asLogin(stored.value, binding(holder))
    const held = login ? { version: stored.version, login } : null
    // A login that was made meanwhile is newer.
    if (this.#held.get(holder) === undefined) this.#held.setNewest(holder, held)
    return this.#held.get(holder) ?? null
  }

  /**
   * Gets another token, once for all who wait for it.
   * @param scopes for the gateway's login as itself
   * @returns null: the authorization server says that the login has ended
   */
  async renew (
    holder: string, held: Held | null, challenge: BearerChallenge, scopes?: readonly string[]
  ): Promise<Held | null> {
    const renew = async (): Promise<Held | null> =>
      this.#isOwn ? await this.#obtain(holder, challenge, scopes) : held && await this.#refresh(holder, held)
    const renewing = this.#renewing.get(holder) ?? renew().finally(() => { this.#renewing.delete(holder) })
    this.#renewing.set(holder, renewing)
    return await renewing
  }

  /** Removes a login that was refused, unless another one is stored meanwhile. */
  async drop (holder: string, { version, login }: Held): Promise<void> {
    const { stores: { tokens }, target: { server } } = this.#deps
    if (this.#held.get(holder)?.login !== login) return
    const stored = await tokens.find(server, holder)
    if (stored?.version === version) await tokens.remove(server, holder)
    this.#held.setNewest(holder, null)
    this.#dropped.add(holder)
  }

  get #requests (): { oauth: LoginTarget['oauth'], fetchFn: ReturnType<FlowDeps['makeFetch']> } {
    return { oauth: this.#deps.target.oauth, fetchFn: this.#deps.makeFetch() }
  }

  /** Logs the gateway in as itself; the login is kept in memory only. */
  async #obtain (holder: string, challenge: BearerChallenge, scopes?: readonly string[]): Promise<Held> {
    const { target: { oauth: { clientId = '', clientSecret } }, binding } = this.#deps
    try {
      const found = await this.#flows.discovered(challenge)
      const client = { id: clientId, ...(clientSecret === undefined ? {} : { secret: clientSecret }) }
      const wanted = scopes ?? this.#flows.scopes(found, { challenge })
      const login = await clientCredentials(found, { binding: binding(holder), client }, wanted, this.#requests)
      return this.set(holder, { version: undefined, login }) ?? { version: undefined, login }
    } catch (error) {
      throw failureOf(error, 'the login with client_credentials')
    }
  }

  /** Refreshes a login; of several replicas one does, and the others wait for its result. */
  async #refresh (holder: string, held: Held): Promise<Held | null> {
    const { stores: { tokens }, target: { server }, binding } = this.#deps
    const { version = '' } = held
    for (const end = Date.now() + claimTime; !await tokens.claim(server, holder, version, claimTime);) {
      const stored = await tokens.find(server, holder)
      if (stored?.version !== version) {
        return this.#hold(holder, stored?.version, asLogin(stored?.value, binding(holder)))
      }
      if (Date.now() > end) {
        throw new UpstreamError('timeout', 'another replica refreshes its login, and has not finished in time')
      }
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
      const refused = oauthCodeOf(error)
      if (refused === 'invalid_client' || refused === 'unauthorized_client') await tokens.remove(server, clientHolder)
      else if (refused !== 'invalid_grant') throw failureOf(error, 'refreshing the login')
      await this.drop(holder, held)
      return null
    }
  }

  #hold (holder: string, version: string | undefined, login: ServerLoginRecord | undefined): Held | null {
    return this.set(holder, login ? { version, login } : null)
  }
}
