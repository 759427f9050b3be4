import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Client as ProviderClient, Interaction, InteractionResults, Provider } from 'oidc-provider'
import type { Consent, Consents } from '../../../db/ports/consents.ts'
import type { User } from '../../../schemas/settings.ts'
import { errors } from '../../base/errors/index.ts'
import { sha256 } from '../../base/secrets/index.ts'
import { describeScopes, type Page, type PageClient, type Pages } from '../../base/pages/index.ts'
import { toAccountId, accountVersionOf, parseAccountId } from './identifiers.ts'
import type { ClientRegistry } from './clients.ts'
import type { GivenConsent } from './provider/grants.ts'
import { defaultScope, grantableScopes, type OAuthSettings } from './settings.ts'
import { createCsrfToken, readCsrfToken } from './csrf.ts'

/** A browser's request to an interaction page, with the oidc-provider instance of the issuer. */
export interface BrowserRequest {
  readonly provider: Provider
  readonly issuer: string
  readonly raw: IncomingMessage
  readonly reply: ServerResponse
  /** The cookie value from which the form's CSRF token is derived. */
  readonly csrfKey: string
}

/** The response to a browser: a page or a redirect. `client`: the OAuth client to which the redirects finally lead. */
export type BrowserResponse = Page | { readonly location: string, readonly client?: PageClient }

interface InteractionDeps {
  readonly pages: Pages
  readonly consents: Consents
  /** Records a change of a user's consent in the audit log. */
  readonly audit: (former: Consent | undefined, next: Consent) => void
  readonly clients: ClientRegistry
  readonly settings: () => OAuthSettings
  /** Returns the absolute path of an interaction's pages on the host of the issuer. */
  readonly interactionPath: (issuer: string, uid: string) => string
  /** Returns links to other ways to log in. After the login, the browser returns to the path `back`. */
  readonly otherLogins: (issuer: string, back: string) => ReadonlyArray<{ name: string, href: string }>
}

/** Returns the user with this name and password, or undefined. @throws TooManyFailures, TooManyRequests */
type Authenticate = (username: string, password: string) => Promise<User | undefined>

/** The content of a consent page that could change before the user decides. */
interface ShownConsent {
  readonly account: string
  readonly scopes: readonly string[]
  /** The fingerprint of the client (see `ConsentRequest`). */
  readonly client: string
}

/** The authorization request that a user decides on. `fingerprint`: a hash of the client's metadata. */
interface ConsentRequest {
  readonly clientId: string
  readonly client: ProviderClient | undefined
  readonly scopes: string[]
  readonly isSelfRegistered: boolean
  readonly fingerprint: string
}

/** The pages on which a user logs in, and grants or denies a client's request. */
export class Interactions {
  readonly #deps: InteractionDeps

  constructor (deps: InteractionDeps) {
    this.#deps = deps
  }

  /** Shows the page for the current step of an interaction. */
  async show (request: BrowserRequest): Promise<BrowserResponse> {
    const details = await this.#detailsOf(request)
    if ('html' in details) return details
    return details.prompt.name === 'login'
      ? await this.#loginPage(request, details, {})
      : await this.#consentPage(request, details)
  }

  /** Logs a user in with the fields of the login form. Shows the form again, with an error, if the login fails. */
  async login (request: BrowserRequest, fields: FormFields, authenticate: Authenticate): Promise<BrowserResponse> {
    const details = await this.#detailsOf(request)
    if ('html' in details) return details
    if (!this.#isOwnForm(request, details, fields)) return this.#expiredPage()
    if (details.prompt.name !== 'login') return await this.#consentPage(request, details)
    const { username = '', password = '' } = fields
    const user = await authenticate(username, password).catch((error: unknown) => {
      if (error instanceof errors.TooManyFailures || error instanceof errors.TooManyRequests) return error
      throw error
    })
    if (user instanceof Error) {
      const page = await this.#loginPage(request, details, { username, error: `${user.message}.`, status: 429 })
      return 'retryAfter' in user
        ? { ...page, headers: { ...page.headers, 'retry-after': String(user.retryAfter) } }
        : page
    }
    if (!user) {
      return await this.#loginPage(request, details, {
        username,
        error: 'The username or the password is wrong.',
        status: 401
      })
    }
    return await this.#logIn(request, details, user)
  }

  async #logIn (request: BrowserRequest, details: Interaction, user: User): Promise<BrowserResponse> {
    const account = toAccountId(accountVersionOf(user))
    await this.#changeAccount(request, details, account)
    return await this.#finish(request, details, { login: { accountId: account, remember: true } })
  }

  /** Continues an interaction after a social login. @param user the user of the browser's social session, if any */
  async continueAfterSocialLogin (request: BrowserRequest, user: User | undefined): Promise<BrowserResponse> {
    const details = await this.#detailsOf(request)
    if ('html' in details) return details
    if (details.prompt.name !== 'login') return await this.#consentPage(request, details)
    if (!user) return await this.#loginPage(request, details, {})
    return await this.#logIn(request, details, user)
  }

  /** Handles the user's decision on the consent page: stores a consent, or reports the denial to the client. */
  async decide (request: BrowserRequest, fields: FormFields): Promise<BrowserResponse> {
    const details = await this.#detailsOf(request)
    if ('html' in details) return details
    const account = details.session?.accountId
    const text = readCsrfToken(request.csrfKey, details.uid, fields.csrf ?? '')
    if (text === undefined) return this.#expiredPage()
    if (details.prompt.name !== 'consent' || account === undefined) return await this.#loginPage(request, details, {})
    if (text === '') return this.#expiredPage()
    if (fields.decision !== 'allow') {
      return await this.#finish(
        request, details, { error: 'access_denied', error_description: 'The user denied the request' }
      )
    }
    const shown = JSON.parse(text) as ShownConsent
    const { clientId, client, scopes: possible, fingerprint } = await this.#consentRequestOf(request, details)
    const scopes = possible.filter((scope) => shown.scopes.includes(scope))
    if (shown.account !== account || shown.client !== fingerprint || scopes.length === 0) {
      return await this.#endOutdated(details)
    }
    const scope = scopes.join(' ')
    const { username, mark } = parseAccountId(account)
    const resource = textOf(details.params.resource)
    const { consents, audit } = this.#deps
    // Tokens of an earlier consent remain valid if the user's rights are unchanged, so the stored consent must include
    // their scopes too.
    const former = await consents.find(username, clientId)
    const heldScopes = former?.resource === resource && former?.mark === mark ? former?.scope.split(' ') ?? [] : []
    const allowed = [...new Set([...heldScopes, ...scopes])].join(' ')
    const consent = {
      username, clientId, scope: allowed, ...(resource === undefined ? {} : { resource }), mark, grantedAt: Date.now()
    }
    await consents.put(consent)
    audit(former, consent)
    const isRefreshable = client?.grantTypeAllowed('refresh_token') === true
    return await this.#finish(request, details, { consent: { scope, isRefreshable } satisfies GivenConsent })
  }

  /** Ends the browser's login session. @returns a redirect that starts the same authorization request again */
  async logout (request: BrowserRequest, fields: FormFields): Promise<BrowserResponse> {
    const details = await this.#detailsOf(request)
    if ('html' in details) return details
    if (!this.#isOwnForm(request, details, fields)) return this.#expiredPage()
    const session = await request.provider.Session.get(request.provider.createContext(request.raw, request.reply))
    await session.destroy()
    await details.destroy()
    const params =
      Object.entries(details.params).filter((entry): entry is [string, string] => typeof entry[1] === 'string')
    return { location: `${request.issuer}/oauth/authorize?${new URLSearchParams(params).toString()}` }
  }

  /** Returns a browser's interaction, or a page if it has expired, or if its redirect URI was removed. */
  async #detailsOf ({ provider, raw, reply }: BrowserRequest): Promise<Interaction | Page> {
    let details: Interaction
    try {
      details = await provider.interactionDetails(raw, reply)
    } catch (error) {
      // Errors of the library have a status code; anything else is an internal error.
      if (!(error instanceof Error && 'statusCode' in error && Number(error.statusCode) < 500)) throw error
      return this.#expiredPage()
    }
    return await this.#problemOf(provider, details) ?? details
  }

  /** Returns a page if the redirect URI of an authorization was removed before the authorization resumes. */
  async checkResumed (provider: Provider, uid: string): Promise<Page | undefined> {
    const details = await provider.Interaction.find(uid)
    return details && await this.#problemOf(provider, details)
  }

  /** Ends an interaction whose redirect URI was removed. The library checks the URI only when the request arrives. */
  async #problemOf (provider: Provider, details: Interaction): Promise<Page | undefined> {
    const client = await provider.Client.find(textOf(details.params.client_id) ?? '')
    const isAllowed = client?.redirectUriAllowed(textOf(details.params.redirect_uri) ?? '') !== false
    return isAllowed ? undefined : await this.#endOutdated(details)
  }

  #expiredPage (): Page {
    return this.#deps.pages.problem({
      title: 'This page has expired',
      text: 'Go back to the application that sent you here, and start again.',
      status: 400
    })
  }

  /** Ends an interaction that is outdated: the user would allow something that the page did not show. */
  async #endOutdated (details: Interaction): Promise<Page> {
    await details.destroy()
    return this.#deps.pages.problem({
      title: 'The request has changed',
      text: 'The application, its permissions, or the account that you are signed in with has changed since this ' +
        'page was shown. Nothing was allowed. Go back to the application, and start again.',
      status: 400
    })
  }

  #isOwnForm ({ csrfKey }: BrowserRequest, { uid }: Interaction, { csrf = '' }: FormFields): boolean {
    return readCsrfToken(csrfKey, uid, csrf) !== undefined
  }

  async #loginPage (
    request: BrowserRequest,
    details: Interaction,
    more: { username?: string, error?: string, status?: number }
  ): Promise<Page> {
    const { pages, interactionPath: path } = this.#deps
    const { uid } = details
    return pages.login({
      client: await this.#clientOf(request, details),
      csrf: createCsrfToken(request.csrfKey, uid),
      action: `${path(request.issuer, uid)}/login`,
      hidden: {},
      others: this.#deps.otherLogins(request.issuer, `${path(request.issuer, uid)}/social`),
      ...more
    })
  }

  async #consentPage (request: BrowserRequest, details: Interaction): Promise<BrowserResponse> {
    const { pages, interactionPath: path } = this.#deps
    const { csrfKey, issuer } = request
    const { uid, params, session } = details
    const { clientId, client, scopes, isSelfRegistered, fingerprint } = await this.#consentRequestOf(request, details)
    if (!client || session?.accountId === undefined) return this.#expiredPage()
    const shown: ShownConsent = { account: session.accountId, scopes, client: fingerprint }
    return pages.consent({
      username: parseAccountId(session.accountId).username,
      client: {
        id: clientId,
        name: client.clientName ?? clientId,
        redirectUri: textOf(params.redirect_uri) ?? '',
        ...(client.clientUri === undefined ? {} : { uri: client.clientUri })
      },
      isSelfRegistered,
      scopes: describeScopes(scopes),
      resource: textOf(params.resource) ?? issuer,
      csrf: createCsrfToken(csrfKey, uid, JSON.stringify(shown)),
      action: `${path(issuer, uid)}/consent`,
      logoutAction: `${path(issuer, uid)}/logout`,
      hidden: {}
    })
  }

  /** Returns the requesting client, and the requested scopes that it may be granted. */
  async #consentRequestOf ({ provider }: BrowserRequest, { params }: Interaction): Promise<ConsentRequest> {
    const clientId = textOf(params.client_id) ?? ''
    const [stored, client] = [await this.#deps.clients.find(clientId), await provider.Client.find(clientId)]
    const asked = (textOf(params.scope) ?? defaultScope).split(' ')
    const scopes = grantableScopes(stored, this.#deps.settings()).filter((scope) => asked.includes(scope))
    const { client_secret: _, ...metadata } = client?.metadata() ?? {}
    const fingerprint = sha256(JSON.stringify([metadata, stored?.scope, stored?.origin]))
    return { clientId, client, scopes, isSelfRegistered: stored?.origin !== 'admin', fingerprint }
  }

  /** Switches the browser's session to the user who has just logged in, if the session belongs to another user. */
  async #changeAccount (
    { provider, raw, reply }: BrowserRequest, details: Interaction, account: string
  ): Promise<void> {
    if (details.session?.uid === undefined || details.session.accountId === account) return
    const session = await provider.Session.get(provider.createContext(raw, reply))
    session.loginAccount({ accountId: account })
    session.authorizations = {}
    await session.persist()
    details.session = { ...details.session, accountId: account }
    await details.persist()
  }

  async #finish (request: BrowserRequest, details: Interaction, result: InteractionResults): Promise<BrowserResponse> {
    const { provider, raw, reply } = request
    const client = await this.#clientOf(request, details)
    return { location: await provider.interactionResult(raw, reply, result), client }
  }

  async #clientOf ({ provider }: BrowserRequest, { params }: Interaction): Promise<PageClient> {
    const clientId = textOf(params.client_id) ?? ''
    const client = await provider.Client.find(clientId)
    return { name: client?.clientName ?? clientId, redirectUri: textOf(params.redirect_uri) ?? '' }
  }
}

export type FormFields = Readonly<Partial<Record<string, string>>>

const textOf = (value: unknown): string | undefined => typeof value === 'string' && value !== '' ? value : undefined
