import { StorageError } from '../../../db/store.ts'
import { UpstreamError } from '../../../protocol/errors.ts'
import { BoundedMap } from '../../base/limits/index.ts'
import type { BearerChallenge } from './challenge.ts'
import { registrationHolder, type ServerLoginDeps, type LoginFlows, type LoginTarget } from './flows.ts'
import { authorizationFailure, isRefreshRefused, oauthErrorCodeOf } from './problems.ts'
import { toLoginRecord, type ServerLoginRecord } from './stored.ts'
import { requestClientCredentials, refreshLogin } from './token-requests.ts'
import { upstreamLimits } from '../limits.ts'

/** A login in memory. `version`: the version in the storage; undefined if the login is not stored. */
export interface CachedLogin { readonly version: string | undefined, readonly login: ServerLoginRecord }

/** How long a replica has the exclusive right to refresh a login, in ms; after that, another replica may try. */
const claimTime = 30_000
/** Time between two checks whether another replica has refreshed a login, in ms. */
const claimPause = 100

/**
 * The logins at one server in memory. A login is read from the storage when it is first needed, and refreshed once for
 * all requests that wait for it.
 */
export class LoginCache {
  readonly #deps: ServerLoginDeps
  readonly #flows: LoginFlows
  /** Whether the gateway logs in as itself (client credentials), so that no user needs to log in. */
  readonly usesClientCredentials: boolean
  /** The logins by holder; null if a holder has none. */
  readonly #held = new BoundedMap<string, CachedLogin | null>(upstreamLimits.login.holders)
  readonly #loading = new Map<string, Promise<CachedLogin | null>>()
  readonly #renewing = new Map<string, Promise<CachedLogin | null>>()
  /** Holders whose login was refused and dropped, and whose links are still to be closed. */
  readonly #dropped = new Set<string>()

  constructor (deps: ServerLoginDeps, flows: LoginFlows) {
    this.#deps = deps
    this.#flows = flows
    this.usesClientCredentials = deps.target.oauth.grantType === 'client_credentials'
  }

  get size (): number { return this.#held.size }

  /** Returns the login of a holder from memory; null if the holder has none; undefined if it was not loaded. */
  peek (holder: string): CachedLogin | null | undefined { return this.#held.get(holder) }

  /**
   * Stores a holder's login in memory; null: the holder has none.
   * @returns the login; null if it is for another config or account, and was not stored
   */
  set (holder: string, held: CachedLogin | null): CachedLogin | null {
    const kept = held?.login.binding === this.#deps.binding(holder) ? held : null
    this.#held.setNewest(holder, kept)
    return kept
  }

  forget (holder: string): void { this.#held.delete(holder) }

  isRenewing (holder: string): boolean { return this.#renewing.has(holder) }

  /** Returns whether a holder's login was dropped since the last call of this method for the holder. */
  takeDropped (holder: string): boolean { return this.#dropped.delete(holder) }

  /** Returns the login of a holder, loaded from the storage if needed; null if the holder has none. */
  async get (holder: string): Promise<CachedLogin | null> {
    const known = this.#held.get(holder)
    if (known !== undefined) return known
    const loading = this.#loading.get(holder) ?? this.#load(holder).finally(() => { this.#loading.delete(holder) })
    this.#loading.set(holder, loading)
    return await loading
  }

  async #load (holder: string): Promise<CachedLogin | null> {
    const { stores: { tokens }, target: { server }, binding } = this.#deps
    const stored = this.usesClientCredentials ? undefined : await tokens.find(server, holder)
    const login = stored && toLoginRecord(stored.value, binding(holder))
    const held = login ? { version: stored.version, login } : null
    // A login that was put into memory in the meantime is newer.
    if (this.#held.get(holder) === undefined) this.#held.setNewest(holder, held)
    return this.#held.get(holder) ?? null
  }

  /**
   * Gets a new access token for a login, once for all requests that wait for it.
   * @param held the login to refresh; null if there is none
   * @param scopes the scopes to request if the gateway logs in as itself; default: chosen from config and metadata
   * @returns the login with the new token; null if there is none to refresh, or the authorization server refused it
   */
  async renew (
    holder: string, held: CachedLogin | null, challenge: BearerChallenge, scopes?: readonly string[]
  ): Promise<CachedLogin | null> {
    const renew = async (): Promise<CachedLogin | null> => {
      if (this.usesClientCredentials) return await this.#obtain(holder, challenge, scopes)
      return held && await this.#refresh(holder, held)
    }
    const renewing = this.#renewing.get(holder) ?? renew().finally(() => { this.#renewing.delete(holder) })
    this.#renewing.set(holder, renewing)
    return await renewing
  }

  /** Drops a login that was refused, in memory and in the storage, unless another one was obtained in the meantime. */
  async drop (holder: string, { version, login }: CachedLogin): Promise<void> {
    const { stores: { tokens }, target: { server } } = this.#deps
    if (this.#held.get(holder)?.login !== login) return
    const stored = await tokens.find(server, holder)
    if (stored?.version === version) await tokens.remove(server, holder)
    this.#held.setNewest(holder, null)
    this.#dropped.add(holder)
  }

  get tokenRequestDeps (): { oauth: LoginTarget['oauth'], fetchFn: ReturnType<ServerLoginDeps['makeFetch']> } {
    return { oauth: this.#deps.target.oauth, fetchFn: this.#deps.makeFetch() }
  }

  /** Logs in as the gateway itself. The login is kept in memory only. */
  async #obtain (holder: string, challenge: BearerChallenge, scopes?: readonly string[]): Promise<CachedLogin> {
    const { target: { oauth: { clientId = '', clientSecret } }, binding } = this.#deps
    try {
      const found = await this.#flows.discover(challenge)
      const client = { id: clientId, ...(clientSecret === undefined ? {} : { secret: clientSecret }) }
      const wanted = scopes ?? this.#flows.scopesFor(found, { challenge })
      const login = await requestClientCredentials(
        found, { binding: binding(holder), client }, wanted, this.tokenRequestDeps
      )
      return this.set(holder, { version: undefined, login }) ?? { version: undefined, login }
    } catch (error) {
      throw authorizationFailure(error, 'the login with client_credentials')
    }
  }

  /** Refreshes a login. If several replicas try, one of them refreshes it, and the others wait for the result. */
  async #refresh (holder: string, held: CachedLogin): Promise<CachedLogin | null> {
    const { stores: { tokens }, target: { server }, binding } = this.#deps
    const { version = '' } = held
    for (const end = Date.now() + claimTime; !await tokens.claim(server, holder, version, claimTime);) {
      const stored = await tokens.find(server, holder)
      if (stored?.version !== version) {
        return this.#hold(holder, stored?.version, toLoginRecord(stored?.value, binding(holder)))
      }
      if (Date.now() > end) {
        throw new UpstreamError('timeout', 'another replica is refreshing its login, and did not finish in time')
      }
      await new Promise((resolve) => { setTimeout(resolve, claimPause) })
    }
    let status = 0
    const fetchFn = this.#deps.makeFetch((received) => { status = received })
    try {
      const login = await refreshLogin(held.login, { oauth: this.#deps.target.oauth, fetchFn })
      const next = await tokens.swap(server, holder, { version }, login)
      if (next !== undefined) return this.#hold(holder, next, login)
      // The user has logged out, or logged in again, in the meantime.
      const stored = await tokens.find(server, holder)
      return this.#hold(holder, stored?.version, toLoginRecord(stored?.value, binding(holder)))
    } catch (error) {
      if (error instanceof StorageError) throw error
      const refused = oauthErrorCodeOf(error)
      if (
        refused === 'invalid_client' || refused === 'unauthorized_client'
      ) await tokens.remove(server, registrationHolder)
      else if (!isRefreshRefused(error, status)) {
        // The next call may try again at once: the authorization server may be back by then.
        await tokens.releaseClaim(server, holder, version).catch(() => {})
        const { message } = authorizationFailure(error, 'refreshing the login')
        // Not the fault of the failed request to the authorization server: the request to the server did not run.
        const sentence = 'its login cannot be refreshed now'
        throw new UpstreamError('unauthorized', sentence, { isPublic: true, detail: `: ${message}` })
      }
      await this.drop(holder, held)
      return null
    }
  }

  #hold (holder: string, version: string | undefined, login: ServerLoginRecord | undefined): CachedLogin | null {
    return this.set(holder, login ? { version, login } : null)
  }
}
