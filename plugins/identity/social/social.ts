import { AsyncLocalStorage } from 'node:async_hooks'
import { EventEmitter } from 'node:events'
import type { IncomingHttpHeaders } from 'node:http'
import type { SocialLogins } from '../../../db/ports/social-logins.ts'
import type { Snapshot } from '../../../db/store.ts'
import type { Principal } from '../../settings/index.ts'
import { errors, noSuchError } from '../../base/errors/index.ts'
import { ownerOfAddress, Semaphore } from '../../base/limits/index.ts'
import type { User } from '../../../schemas/settings.ts'
import { accountMarkOf, accountSubjectOf } from '../users/account.ts'
import type { BetterAuth, LoginAccount } from './better-auth.ts'
import {
  cookieSettingsFor, type CookieSettings, mayHaveSessionCookie, pickCookies, originOf, allowedRedirectTarget,
  type SocialSettings
} from './settings.ts'
import { syntheticEmailOf, type SocialAccounts } from './local-accounts.ts'
import type { IdentityProvider } from './providers/provider.ts'
import { identityLimits } from '../limits.ts'
import { type ShownSocialSession, sessionCredentialId, principalOfSession } from './session.ts'

/** Functions that return public addresses. better-auth keeps the addresses that they return when it is first used. */
interface PublicAddresses {
  /** Returns the public address of the gateway, with the base path. */
  readonly base: () => string
  /** Returns the trusted origins that apply if the operator has configured none. */
  readonly defaultOrigins: () => readonly string[]
}

interface SocialDeps {
  readonly settings: SocialSettings
  /** The storage of social login; undefined without a database. */
  readonly logins: SocialLogins | undefined
  readonly providers: readonly IdentityProvider[]
  readonly accounts: SocialAccounts
  readonly addresses: PublicAddresses
  /** `lifetime`: of a session, in ms; `secret`: signs the cookies of sessions, and is the same on all replicas. */
  readonly sessions: { readonly lifetime: number, readonly secret: string }
  readonly log: { debug: (about: object, message: string) => void, warn: (about: object, message: string) => void }
}

/** The parts of a request that are relevant to a login. */
interface SocialRequest {
  readonly headers: IncomingHttpHeaders
  readonly ip: string
  readonly host: string
  readonly protocol: string
}

/** A redirect of a browser, with the values of its `Set-Cookie` headers. */
export interface BrowserRedirect { readonly location: string, readonly cookies: readonly string[] }

/**
 * The login that is in progress in a request. `iss`: the issuer in the provider's redirect; `account`: the local
 * account of the user, once found; `problem`: the error of a failed step.
 */
interface LoginInProgress { readonly iss?: string, account?: LoginAccount, problem?: unknown }

/** The instance of better-auth, created on first use, with the configuration that it was created with. */
interface RunningBetterAuth {
  readonly auth: BetterAuth,
  readonly mount: URL,
  readonly cookies: CookieSettings,
  readonly trusted: ReadonlySet<string>
}

/** Social login, based on better-auth. Emits `ended` with the credential id of a session when its user signs out. */
export class SocialLogin extends EventEmitter<{ ended: [id: string] }> {
  readonly #deps: SocialDeps
  readonly #login = new AsyncLocalStorage<LoginInProgress>()
  readonly #turns = new Semaphore({ places: identityLimits.social.requests })
  #running: Promise<RunningBetterAuth> | undefined

  constructor (deps: SocialDeps) {
    super()
    this.#deps = deps
  }

  get isEnabled (): boolean { return this.#deps.settings.offReason === undefined && this.#deps.logins !== undefined }

  /** The path of social login below the base path. */
  get path (): string { return this.#deps.settings.path }

  /** The providers with which users can log in; empty while social login is disabled. */
  get providers (): ReadonlyArray<{ id: string, name: string }> {
    return this.isEnabled ? this.#deps.providers.map(({ id, name }) => ({ id, name })) : []
  }

  /** Checks that social login is enabled. @throws SocialLoginOff with the reason why it is not */
  assertEnabled (): void {
    const { offReason: off } = this.#deps.settings
    if (off !== undefined) throw new errors.SocialLoginOff(off)
  }

  /**
   * Whether social login is enabled with this public origin, so that a login that starts at the origin returns to it.
   */
  isServedAt (origin: string): boolean { return this.isEnabled && originOf(this.#deps.addresses.base()) === origin }

  /**
   * Begins a login.
   * @param target where the browser finally goes: a path on this gateway, or an address of a trusted origin
   * @returns the redirect to the provider
   * @throws SocialLoginOff, NoSuch, InvalidInput, UpstreamFailed, UpstreamSlow
   */
  async begin (provider: string, target: string): Promise<BrowserRedirect> {
    const { mount, trusted } = await this.#ensureRunning()
    if (!this.#deps.providers.some(({ id }) => id === provider)) throw noSuchError('login provider', provider)
    const safe = allowedRedirectTarget(target, (origin) => origin === mount.origin || trusted.has(origin))
    if (safe === undefined) {
      throw new errors.InvalidInput('"callbackURL" must be a path of this gateway, or an address of a trusted origin')
    }
    const body = JSON.stringify({ provider, callbackURL: new URL(safe, mount.origin).href, disableRedirect: true })
    const { response } =
      await this.#request('/sign-in/social', { method: 'POST', headers: { 'content-type': 'application/json' }, body })
    const { url } = await response.json() as { url?: string }
    if (!response.ok || url === undefined) throw new errors.InvalidInput('This login cannot be started')
    return { location: url, cookies: response.headers.getSetCookie() }
  }

  /**
   * Completes a login with the parameters of the provider's redirect.
   * @throws SocialLoginOff, NoSuch, LoginExpired, Forbidden, UpstreamFailed, UpstreamSlow, StorageAway
   */
  async finish (
    provider: string, query: Readonly<Record<string, unknown>>, { headers, ip }: SocialRequest
  ): Promise<BrowserRedirect> {
    const { mount, cookies } = await this.#ensureRunning()
    if (!this.#deps.providers.some(({ id }) => id === provider)) throw noSuchError('login provider', provider)
    const received = ['code', 'state', 'error', 'iss'].flatMap((name): Array<[string, string]> => {
      const value = query[name]
      return typeof value === 'string' ? [[name, value]] : []
    })
    const params = new URLSearchParams(received)
    const cookie = pickCookies(headers, [cookies.state])
    const path = `/callback/${encodeURIComponent(provider)}?${params.toString()}`
    const release = await this.#turns.take(ownerOfAddress(ip), false)
    const { response } =
      await this.#request(path, { headers: { cookie } }, { iss: params.get('iss') ?? undefined }).finally(release)
    const location = response.headers.get('location') ?? ''
    if (location === '' || location.startsWith(`${mount.href}/error`)) throw failureOf(location, params.get('error'))
    return { location, cookies: response.headers.getSetCookie() }
  }

  /** Returns the session of a request; undefined if the request has none. @throws SocialLoginOff, StorageAway */
  async session (headers: IncomingHttpHeaders): Promise<ShownSocialSession | undefined> {
    const found = await this.#findSession(headers)
    if (!found) return undefined
    const { session, user } = found
    const principal = principalOfSession(session, this.#deps.accounts.snapshot)
    return principal && {
      session: {
        id: session.id,
        userId: session.userId,
        createdAt: session.createdAt.toISOString(),
        expiresAt: session.expiresAt.toISOString()
      },
      user: { id: user.id, name: user.name, username: principal.user, isAdmin: principal.isAdmin }
    }
  }

  /**
   * Ends the session of a request at this gateway; the user stays logged in at the provider.
   * @returns the values of the `Set-Cookie` headers to send
   * @throws SocialLoginOff, StorageAway
   */
  async signOut (headers: IncomingHttpHeaders): Promise<readonly string[]> {
    const { cookies } = await this.#ensureRunning()
    const found = await this.#findSession(headers)
    const { response } = await this.#request('/sign-out', {
      method: 'POST',
      headers: { cookie: pickCookies(headers, [cookies.session]), 'content-type': 'application/json' },
      body: '{}'
    })
    // The library responds in the same way if it could not remove the session.
    if (found && await this.#findSession(headers)) throw new errors.StorageAway('the session could not be ended')
    if (found) this.emit('ended', sessionCredentialId(found.session))
    return response.headers.getSetCookie()
  }

  /** Removes the identities and the sessions of a removed account. @throws StorageError */
  async removeAccountData (user: User): Promise<void> {
    await this.#deps.logins?.removeIdentities(user.username, accountSubjectOf(user), syntheticEmailOf)
  }

  /**
   * Returns the principal of a request's session, or undefined. Returns a promise only if the request may have a
   * session cookie.
   * @throws StorageAway
   */
  identify (headers: IncomingHttpHeaders, snapshot: Snapshot): Promise<Principal | undefined> | undefined {
    if (!this.isEnabled || !mayHaveSessionCookie(headers)) return undefined
    return this.#findSession(headers).then((found) => found && principalOfSession(found.session, snapshot))
  }

  /**
   * Checks that a request with the session cookie comes from a page of the gateway or of a trusted origin, since
   * browsers may send the cookie with requests from other pages, too.
   * @throws UntrustedOrigin, also for a request with neither `Origin` nor `Referer`
   */
  async checkOrigin ({ headers, host, protocol }: SocialRequest): Promise<void> {
    const { trusted } = await this.#ensureRunning()
    const origin = headers.origin ?? originOf(headers.referer)
    const own = originOf(`${protocol}://${host}`)
    if (origin === undefined || (origin !== own && !trusted.has(origin))) throw new errors.UntrustedOrigin()
  }

  async #findSession (headers: IncomingHttpHeaders) {
    const { auth, cookies } = await this.#ensureRunning()
    const cookie = pickCookies(headers, [cookies.session])
    if (cookie === '') return undefined
    try {
      return await auth.api.getSession({ headers: new Headers({ cookie }), query: { disableRefresh: true } }) ??
        undefined
    } catch {
      throw new errors.StorageAway('sessions cannot be looked up')
    }
  }

  /** Passes a request to better-auth as if it were received over HTTP. @throws the error of a failed login step */
  async #request (
    path: string, init: RequestInit & { headers: Record<string, string> }, login: LoginInProgress = {}
  ): Promise<{ response: Response }> {
    const { auth, mount } = await this.#ensureRunning()
    const request = new Request(
      `${mount.href}${path}`, { ...init, headers: { ...init.headers, origin: mount.origin }, redirect: 'manual' }
    )
    const response = await this.#login.run(login, async () => await auth.handler(request))
    if (login.problem === undefined) return { response }
    this.#deps.log.warn({ err: login.problem }, 'a social login failed')
    throw login.problem
  }

  async #ensureRunning (): Promise<RunningBetterAuth> {
    this.assertEnabled()
    const starting = this.#running ??= this.#start()
    try {
      return await starting
    } catch (error) {
      if (this.#running === starting) this.#running = undefined
      throw error
    }
  }

  async #start (): Promise<RunningBetterAuth> {
    const { settings, logins, providers, accounts, addresses: { base, defaultOrigins }, sessions, log } = this.#deps
    if (!logins) throw new errors.SocialLoginOff('there is no database')
    const { createBetterAuth } = await import('./better-auth.ts')
    const mount = new URL(`${base()}${settings.path}`)
    const cookies = cookieSettingsFor(base())
    const trusted = new Set(settings.trustedOrigins ?? defaultOrigins())
    const auth = createBetterAuth({
      database: await logins.loadAdapter(),
      secret: sessions.secret,
      mountUrl: mount,
      trustedOrigins: [...new Set([mount.origin, ...trusted])],
      cookies,
      lifetime: Math.max(1, Math.floor(sessions.lifetime / 1_000)),
      providers,
      resolveAccount: async (provider, identify) => {
        const login = this.#login.getStore()
        await provider.checkIssuer(login?.iss)
        const person = await identify()
        const user = await accounts.findOrCreate(person)
        if (login) login.account = { username: user.username, mark: accountMarkOf(user) }
        return { person, username: user.username }
      },
      resolvedAccount: () => {
        const { account } = this.#login.getStore() ?? {}
        if (!account) throw new Error('a session has no account')
        return account
      },
      runStep: async (run) => {
        try {
          return await run()
        } catch (error) {
          const login = this.#login.getStore()
          if (login) login.problem = error
          throw error
        }
      },
      trimSessions: async (userId) => { await logins.trimSessions(userId, identityLimits.social.sessions) },
      log: (level, message) => { log.debug({ level }, `better-auth: ${message}`) }
    })
    return { auth, mount, cookies, trusted }
  }
}

/**
 * Returns the error for a failure that better-auth reports by a redirect.
 * @param refusal the provider's `error` parameter
 */
function failureOf (location: string, refusal: string | null): Error {
  const code = URL.canParse(location) ? new URL(location).searchParams.get('error') ?? '' : ''
  if (/^state_|^no_code$/.test(code)) return new errors.LoginExpired()
  if (refusal !== null) {
    const known = /^[a-z_]{1,40}$/.test(refusal) ? ` (${refusal})` : ''
    return new errors.Forbidden(`The login provider did not let you in${known}`)
  }
  return new errors.StorageAway('the login could not be stored; try again')
}
