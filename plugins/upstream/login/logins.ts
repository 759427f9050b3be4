import type { Server, Snapshot } from '../../../db/store.ts'
import { UpstreamError } from '../../../protocol/errors.ts'
import { isObject } from '../../../protocol/json.ts'
import { isolationOf, passthroughHeaderNames, type ServerConfig } from '../../../schemas/server.ts'
import { type Outbound, outboundAccessOf } from '../../base/outbound/index.ts'
import { visibleText } from '../../base/pages/index.ts'
import { sha256 } from '../../base/secrets/index.ts'
import { removedAccountNames, accountSubjectOf, principalOfUser } from '../../identity/index.ts'
import { canSee } from '../../settings/index.ts'
import { isRemoteMcpServer, isRemote } from '../links/transport.ts'
import { expandVariables, type ProcessEnvironment } from '../links/environment.ts'
import { type ServerLoginDeps, hashOfState, type LoginStores, type SavedFlow } from './flows.ts'
import { outboundFetch } from './sdk.ts'
import { type AuthorizationDiscovery, foreignIssuer } from './discovery.ts'
import {
  authorizationFailure, failedLogin, type LoginOutcome, oauthErrorCodeOf, refusalText, UserActionRequired
} from './problems.ts'
import {
  manualRegistrationAdvice, createClientIdMetadataDocument, clientWithoutRegistration, registrationObstacle,
  credentialsRequiredError, type GatewayAsOAuthClient
} from './registration.ts'
import { holderOf, ServerLogin, type LoginListener } from './server-login.ts'
import { findLoginStart, parseTaggedState, type LoginStart } from './starts.ts'
import { exchangeCode } from './token-requests.ts'

interface LoginsDeps {
  readonly stores: LoginStores
  readonly outbound: Outbound
  readonly environment: ProcessEnvironment
  readonly settings: () => Snapshot
  /** Returns the gateway as a client of authorization servers. */
  readonly self: () => GatewayAsOAuthClient
  /** Resolves once the public address of the gateway is known. */
  readonly listening: () => Promise<void>
}

/** The parameters of an authorization response (RFC 6749, section 4.1.2; RFC 9207, section 2). */
type LoginResponse = Readonly<Partial<Record<'code' | 'state' | 'iss' | 'error' | 'error_description', string>>>

const userPrefix = holderOf('')
/** The prefix of the holders of system keys. Usernames contain no space, so no user's holder begins with it. */
const keyPrefix = holderOf('key ')

/** Returns the user who holds a login; undefined if a bearer key holds it, or all users share it. */
const usernameOf = (holder: string): string | undefined =>
  holder.startsWith(userPrefix) && !holder.startsWith(keyPrefix) ? holder.slice(userPrefix.length) : undefined

/** How far back changes made by other replicas are looked up, in ms: longer than a write to a slow storage takes. */
const lookBack = 30_000

/** The OAuth logins at all servers: completes logins when browsers return, and applies changes by other replicas. */
export class Logins {
  readonly #deps: LoginsDeps
  readonly #servers = new Map<string, ServerLogin>()

  constructor (deps: LoginsDeps) {
    this.#deps = deps
  }

  get (server: string): ServerLogin | undefined { return this.#servers.get(server) }

  /** Creates the `ServerLogin` of a running server, in place of the former; undefined if the server takes no login. */
  open (name: string, config: ServerConfig, listener: LoginListener): ServerLogin | undefined {
    this.#servers.delete(name)
    if (!takesLogin(config)) return undefined
    const login = new ServerLogin(this.#depsOf(name, config), listener)
    this.#servers.set(name, login)
    return login
  }

  /**
   * Creates the `ServerLogin` for a test of a server; undefined if it takes no login. A stored login for the config is
   * used. If there is none but the server requires one, the connection fails with UserActionRequired or an
   * UpstreamError.
   */
  openForTest (name: string, config: ServerConfig, listener: LoginListener): ServerLogin | undefined {
    if (!takesLogin(config)) return undefined
    const deps = this.#depsOf(name, config)
    const beforeBegin = async (found: AuthorizationDiscovery): Promise<void> => {
      if (found.isGuess) throw credentialsRequiredError()
      const obstacle = registrationObstacle(found, deps.target.oauth)
      if (obstacle !== undefined) {
        const self = await deps.self()
        if (!clientWithoutRegistration(deps.target.oauth, found, self)) {
          throw new UpstreamError('unauthorized', `${obstacle}: ${manualRegistrationAdvice(self)}`)
        }
      }
      throw new UserActionRequired('login', 'manager', undefined,
        `the upstream requires a login (OAuth) at ${found.server.url}`)
    }
    return new ServerLogin({ ...deps, beforeBegin }, listener)
  }

  #depsOf (name: string, config: ServerConfig): ServerLoginDeps {
    const { stores, outbound, environment, self, listening } = this.#deps
    const redirectUri = config.oauth?.redirectUri
    const reach = outboundAccessOf(config)
    const origins = (): ReadonlySet<string> => originsIn(expandVariables(config, environment).config)
    return {
      target: {
        server: name,
        oauth: config.oauth ?? {},
        isPerUser: isolationOf(config) === 'user',
        url: () => urlOf(expandVariables(config, environment).config),
        isAdminStored: reach.trusted
      },
      stores,
      makeFetch: (onStatus) => outboundFetch(outbound, { reach, origins }, onStatus),
      binding: (holder) => sha256(`${bindingOf(config)} ${this.#subject(holder)}`),
      self: async () => {
        await listening()
        // The gateway's Client ID Metadata Document does not contain a redirect URI from a config.
        return redirectUri === undefined ? self() : { ...self(), redirectUri, documentUrl: undefined }
      }
    }
  }

  /** The gateway's Client ID Metadata Document; undefined while its base URL is not https. */
  get clientIdMetadataDocument (): Record<string, unknown> | undefined {
    const self = this.#deps.self()
    return self.documentUrl === undefined ? undefined : createClientIdMetadataDocument(self)
  }

  close (name: string, login: ServerLogin): void {
    if (this.#servers.get(name) === login) this.#servers.delete(name)
  }

  /**
   * Finds the started login to which a ticket leads.
   * @returns undefined if the ticket is unknown or has expired, or if the server is hidden from the user. `whose`: for
   *   whom the login is, in words; `user`: the user who will hold it; undefined if all users or a bearer key hold it
   * @throws StorageError
   */
  async findStart (
    ticket: string
  ): Promise<LoginStart & { readonly whose: string, readonly user?: string } | undefined> {
    const start = await findLoginStart(this.#deps.stores.states, ticket)
    if (!start || !this.#isShownToUser(start)) return undefined
    return { ...start, ...this.#beneficiaryOf(start.holder) }
  }

  /**
   * Completes a login with the authorization response that a browser brings. The `state` in the response is valid once,
   * and only in the browser in which the login was started.
   * @param browserKey the value of the browser's cookie; undefined if it sent none
   * @throws StorageError
   */
  async finish (response: LoginResponse, browserKey: string | undefined): Promise<LoginOutcome> {
    const { state: text = '', error, error_description: description } = response
    const sent = parseTaggedState(text, browserKey)
    if (sent?.isOwn === false) {
      return failedLogin(
        'This login was started in another browser',
        'It must be completed in that browser. Nothing was changed. Open the address there, and continue on its page.'
      )
    }
    const taken = sent && await this.#deps.stores.grants.take(hashOfState(sent.state))
    if (taken?.first === false) {
      return failedLogin('This login has already ended', 'The address was already used. Start again with a new one.')
    }
    const saved = taken?.value
    if (!isSavedFlow(saved)) {
      const text = 'It was started too long ago, or at another gateway. Start again with a new address.'
      return failedLogin('This login is not known', text)
    }
    const login = this.#servers.get(saved.server)
    const changed = [
      'The server or the account has changed',
      'One of them was changed or removed while you logged in, or you may no longer use the server. Start again with ' +
        'a new address.'
    ] as const
    if (login?.accepts(saved) !== true) return failedLogin(...changed)
    const refuse = async (title: string, text: string, problem?: string): Promise<LoginOutcome> => {
      // The `state` has been used, so the next login needs a new request.
      await login.flows.fail(saved.holder, saved.start)
      void login.prepare(saved.holder)
      return { ...failedLogin(title, text), problem: problem && `${saved.server}: the login failed: ${problem}` }
    }
    if (!this.#isShownToUser(saved)) return await refuse(...changed)
    const foreign = foreignIssuer(saved, response.iss)
    if (foreign !== undefined) return await refuse('This response is not trusted', foreign)
    const { code } = response
    if (error !== undefined || code === undefined) {
      const why = [error ?? 'it returned no code', ...description === undefined ? [] : [description]].join(': ')
      return await refuse('The login was refused', refusalText(saved.server, error), visibleText(why, 300))
    }
    const { codeVerifier, redirectUri, frame, server, holder } = saved
    const { target: { oauth }, makeFetch } = login.deps
    const made = await exchangeCode(frame, { code, codeVerifier, redirectUri }, { oauth, fetchFn: makeFetch() })
      .catch((reason: unknown) => ({ reason }))
    if ('reason' in made) {
      const answered = oauthErrorCodeOf(made.reason)
      const { message } = authorizationFailure(made.reason, 'the exchange of the code')
      return await refuse('The login failed', answered === undefined
        ? `At server ${JSON.stringify(server)}, ${message}.`
        : refusalText(server, answered), message)
    }
    await login.storeLogin(holder, made)
    const who = this.#beneficiaryOf(holder)
    const use = `Tool-Hub now uses this login at server ${JSON.stringify(server)}, for ${who.whose}.`
    return {
      ok: true, title: 'You are logged in', text: `${use} You can close this window.`, login: { server, ...who }
    }
  }

  /** Whether the user who will hold a login, if it is a stored user, may use the server. */
  #isShownToUser ({ server: name, holder }: Pick<LoginStart, 'server' | 'holder'>): boolean {
    const snapshot = this.#deps.settings()
    const user = snapshot.users.get(usernameOf(holder) ?? '')
    const server = snapshot.servers.get(name)
    return !user || (server !== undefined && canSee(snapshot, principalOfUser(user, undefined), server, 'public'))
  }

  /** Returns in words for whom a login is used. `user`: absent if a bearer key holds it, or all users share it. */
  #beneficiaryOf (holder: string): { whose: string, user?: string } {
    const user = usernameOf(holder)
    if (user !== undefined) return { whose: `the user ${user}`, user }
    if (!holder.startsWith(keyPrefix)) return { whose: 'everybody who may use the server' }
    const { name = '' } = this.#deps.settings().keys.get(holder.slice(keyPrefix.length)) ?? {}
    return { whose: `the bearer key ${JSON.stringify(name)}` }
  }

  /** Applies recent changes of logins that were made by other replicas. @throws StorageError */
  async syncReplicas (): Promise<void> {
    if (![...this.#servers.values()].some(({ isActive }) => isActive)) return
    const changes = await this.#deps.stores.tokens.listChangedWithin(lookBack)
    await Promise.all(
      changes.map(
        async ({ server, holder, version }) => { await this.#servers.get(server)?.onChanged(holder, version) }
      )
    )
  }

  /** Removes the logins of servers, users and keys that were removed or replaced. @throws StorageError */
  async removeGone (former: Snapshot, next: Snapshot): Promise<void> {
    const { tokens } = this.#deps.stores
    // Logins in memory are forgotten before the first `await`: a new account of the same name may appear at any time.
    const holders = [...removedAccountNames(former.users, next.users)].map(holderOf)
    for (const id of former.keys === next.keys ? [] : former.keys.keys()) {
      if (!next.keys.has(id)) holders.push(holderOf(`key ${id}`))
    }
    for (const login of this.#servers.values()) for (const holder of holders) login.forget(holder)
    for (const [name, { config }] of former.servers) {
      const now = next.servers.get(name)
      // Unchanged configs are the same objects. Comparing the hashes of 10,000 servers would take too long.
      if (now?.config === config) continue
      const isGone = !now || bindingOf(now.config) !== bindingOf(config)
      if (isGone && isRemote(config)) await tokens.removeAll({ server: name })
    }
    for (const holder of holders) await tokens.removeAll({ holder })
  }

  /** Returns a text that identifies a holder's account, and differs for a later account of the same name. */
  #subject (holder: string): string {
    const user = this.#deps.settings().users.get(usernameOf(holder) ?? '')
    return user ? accountSubjectOf(user) : holder
  }
}

/** Whether the gateway may log in at a server: an MCP server at a URL that gets no other `Authorization` header. */
function takesLogin (config: ServerConfig): boolean {
  const given = [...Object.keys(config.headers ?? {}), ...passthroughHeaderNames(config)]
  return isRemoteMcpServer(config) && !given.some((name) => name.toLowerCase() === 'authorization')
}

/** Returns the origins of the server's and the authorization server's addresses in a config. */
function originsIn (
  { url, oauth: { issuer, authorizationEndpoint, tokenEndpoint } = {} }: ServerConfig
): ReadonlySet<string> {
  const addresses = [url, issuer, authorizationEndpoint, tokenEndpoint]
  return new Set(addresses.flatMap((each) => each !== undefined && URL.canParse(each) ? [new URL(each).origin] : []))
}

/** Returns a hash of a server's owner and the addresses that get its tokens: a login is valid only for these. */
function bindingOf ({ url, owner = 'admin', createdAt, oauth = {} }: Server['config']): string {
  const { clientId, issuer, resource, authorizationEndpoint, tokenEndpoint } = oauth
  return sha256(
    JSON.stringify([url, owner, createdAt, clientId, issuer, resource, authorizationEndpoint, tokenEndpoint])
  )
}

/** Parses a server's URL, with its variables expanded. @throws UpstreamError */
function urlOf ({ url = '' }: ServerConfig): URL {
  if (URL.canParse(url)) return new URL(url)
  throw new UpstreamError('refused', '"url" is not an absolute http or https address after its variables are expanded')
}

const isSavedFlow = (value: unknown): value is SavedFlow => isObject(value) && value.kind === 'upstream-login'
