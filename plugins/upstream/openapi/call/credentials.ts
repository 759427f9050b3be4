import { UpstreamError } from '../../../../protocol/errors.ts'
import { parseJsonObject } from '../../../../protocol/json.ts'
import { withoutBom } from '../../../../protocol/text.ts'
import { normalizeSecurity, type OpenApiSecurity } from '../../../../schemas/openapi-upstream.ts'
import type { Outbound, OutboundAccess } from '../../../base/outbound/index.ts'
import { clientBasicAuthorization, toHeader } from '../http-syntax.ts'
import type { CredentialDefaults } from '../plan.ts'
import type { ApiRequest } from './request.ts'
import { percentEncode } from './values.ts'
import { upstreamLimits } from '../../limits.ts'

type Security = ReturnType<typeof normalizeSecurity>

/** An access token. `until`: the time until which it is used, in ms since the epoch. */
interface AccessToken { text: string, until: number }

/** A response of a token endpoint or of a discovery document. */
interface Response { status: number, body: Buffer }

/** Time before the expiry at which a token is renewed, in ms. */
const renewalMargin = 30_000
const discoveryPath = '/.well-known/openid-configuration'

/**
 * The credentials for requests to one API. An access token is fetched when it is first needed, once for all requests
 * that wait for it, and used until shortly before it expires.
 */
export class ApiCredentials {
  readonly #security: Security
  readonly #outbound: Outbound
  readonly #access: OutboundAccess
  #token: AccessToken | undefined
  #fetching: Promise<AccessToken> | undefined
  #tokenEndpoint: string | undefined
  /** Whether the client's secret is sent to the token endpoint in the body, since the header was not accepted. */
  #isSecretInBody = false

  constructor (security: OpenApiSecurity | undefined, outbound: Outbound, access: OutboundAccess) {
    this.#security = normalizeSecurity(security ?? { type: 'none' })
    this.#outbound = outbound
    this.#access = access
  }

  /**
   * Adds the credentials to a request. A header that the request already has is not replaced.
   * @param defaults values from the description, used where the configuration has none
   * @returns the access token, if it was fetched from a token endpoint and so can be renewed; otherwise undefined
   * @throws UpstreamError if no access token can be fetched
   */
  async authorize (request: ApiRequest, defaults: CredentialDefaults): Promise<string | undefined> {
    const { type, token } = this.#security
    if (type === 'none') return undefined
    if (type === 'apiKey') {
      this.#addApiKey(request, defaults)
      return undefined
    }
    if (request.headers.has('authorization')) return undefined
    if (type === 'http') {
      request.headers.set(...toHeader('authorization', this.#httpAuthorization()))
      return undefined
    }
    const fetched = token === undefined ? (await this.#currentToken(defaults)).text : undefined
    request.headers.set(...toHeader('authorization', `Bearer ${token ?? fetched}`))
    return fetched
  }

  /** Discards an access token that the API rejected, so that a new one is fetched for the next request. */
  invalidate (token: string): void {
    if (this.#token?.text === token) this.#token = undefined
  }

  #addApiKey ({ headers, query, configuredQuery, cookies }: ApiRequest, { apiKey }: CredentialDefaults): void {
    const { name = apiKey?.name, in: location = apiKey?.in ?? 'header', value = '' } = this.#security
    if (name === undefined) {
      throw new UpstreamError(
        'refused', '"openapi.security" of type "apiKey" needs a "name": the description does not state it'
      )
    }
    if (location === 'query') {
      const pair = `${percentEncode(name)}=${percentEncode(value)}`
      query.push(pair)
      configuredQuery.push(pair)
    } else if (location === 'cookie') cookies.push(toHeader('cookie', `${name}=${percentEncode(value)}`)[1])
    else if (!headers.has(name.toLowerCase())) headers.set(...toHeader(name, value))
  }

  /**
   * Returns the `Authorization` header for credentials of type `http`. For Basic, `credentials` in the configuration
   * are either `user:password` or the same in base64.
   */
  #httpAuthorization (): string {
    const { scheme, token, username = '', password = '', credentials } = this.#security
    const kind = scheme?.toLowerCase() ?? (token === undefined ? 'basic' : 'bearer')
    if (kind === 'basic') {
      if (credentials === undefined) return `Basic ${toBase64(`${username}:${password}`)}`
      return `Basic ${credentials.includes(':') ? toBase64(credentials) : credentials}`
    }
    return `${kind === 'bearer' ? 'Bearer' : scheme} ${token ?? credentials ?? ''}`
  }

  async #currentToken (defaults: CredentialDefaults): Promise<AccessToken> {
    if (this.#token && this.#token.until > Date.now()) return this.#token
    this.#fetching ??= this.#fetchToken(defaults).finally(() => {
      this.#fetching = undefined
    })
    this.#token = await this.#fetching
    return this.#token
  }

  /** Fetches an access token with the client credentials grant (RFC 6749, section 4.4). */
  async #fetchToken (defaults: CredentialDefaults): Promise<AccessToken> {
    const endpoint = this.#tokenEndpoint ??= await this.#findTokenEndpoint(defaults)
    const first = await this.#requestToken(endpoint, this.#isSecretInBody)
    let response = first
    // Token endpoints must accept the secret in a header (RFC 6749, section 2.3.1), but some accept it only in the
    // body.
    if (first.status === 400 || first.status === 401) {
      response = await this.#requestToken(endpoint, !this.#isSecretInBody)
      if (response.status === 200) this.#isSecretInBody = !this.#isSecretInBody
    }
    const { access_token: text, expires_in: expiresIn } = objectIn(response.body)
    if (response.status !== 200 || typeof text !== 'string' || text === '') {
      throw new UpstreamError(
        'refused',
        `the token endpoint ${withoutQuery(endpoint)} returned no token (HTTP ${first.status}): ` +
          'check "clientId", "clientSecret" and "scopes"'
      )
    }
    return { text, until: renewalTime(expiresIn) }
  }

  async #requestToken (endpoint: string, isSecretInBody: boolean): Promise<Response> {
    const { clientId = '', clientSecret = '', scopes = [] } = this.#security
    const body = new URLSearchParams({ grant_type: 'client_credentials' })
    if (scopes.length > 0) body.set('scope', scopes.join(' '))
    const headers: Record<string, string> = {
      'content-type': 'application/x-www-form-urlencoded', accept: 'application/json'
    }
    if (isSecretInBody) {
      body.set('client_id', clientId)
      body.set('client_secret', clientSecret)
    } else headers.authorization = clientBasicAuthorization(clientId, clientSecret)
    return await this.#request(endpoint, 'the token endpoint', { method: 'POST', headers, body: body.toString() })
  }

  async #findTokenEndpoint (defaults: CredentialDefaults): Promise<string> {
    const { type, tokenUrl = defaults.tokenUrl, url = defaults.openIdConnectUrl } = this.#security
    if (type === 'oauth2') {
      if (tokenUrl === undefined) {
        const lack = 'needs a "tokenUrl": the description has none on the server\'s own origin'
        throw new UpstreamError('refused', `"openapi.security" of type "oauth2" ${lack}`)
      }
      return tokenUrl
    }
    if (url === undefined) {
      const lack = 'needs a "url": the description has none on the server\'s own origin'
      throw new UpstreamError('refused', `"openapi.security" of type "openIdConnect" ${lack}`)
    }
    const discoveryUrl = url.includes('/.well-known/') ? url : `${url.replace(/\/$/, '')}${discoveryPath}`
    const headers = { accept: 'application/json' }
    const { status, body } = await this.#request(discoveryUrl, 'the discovery document', { method: 'GET', headers })
    const { token_endpoint: endpoint } = objectIn(body)
    if (status !== 200 || typeof endpoint !== 'string') {
      throw new UpstreamError(
        'refused', `the discovery document ${withoutQuery(discoveryUrl)} has no token endpoint (HTTP ${status})`
      )
    }
    return endpoint
  }

  /**
   * Sends a request to a token endpoint or for a discovery document.
   * @param subject what is requested, in words for error messages
   * @throws UpstreamError if there is no response
   */
  async #request (
    url: string,
    subject: string,
    options: { method: 'GET' | 'POST'; headers: Record<string, string>; body?: string }
  ): Promise<Response> {
    if (!URL.canParse(url)) throw new UpstreamError('refused', `${subject} is not an absolute http or https address`)
    try {
      return await this.#outbound.fetch(url, {
        ...this.#access,
        ...options,
        maxSize: upstreamLimits.openapi.token,
        timeout: upstreamLimits.openapi.tokenTime
      })
    } catch (error) {
      if (!(error instanceof UpstreamError)) throw error
      throw new UpstreamError('refused', `the request to ${subject} ${withoutQuery(url)} failed: ${error.message}`)
    }
  }
}

/**
 * Returns the time at which a token is renewed, in ms since the epoch: shortly before its expiry, but not before half
 * of its lifetime. Infinity if the token has no `expires_in`.
 */
function renewalTime (expiresIn: unknown): number {
  const seconds = Number(expiresIn)
  if (expiresIn === undefined || !Number.isFinite(seconds)) return Infinity
  return Date.now() + Math.max(seconds * 1_000 - renewalMargin, seconds * 500)
}

const toBase64 = (text: string): string => Buffer.from(text).toString('base64')

/** Returns only the origin and path of a URL: its query and credentials may be secret. @throws TypeError if invalid */
export function withoutQuery (url: string): string {
  const { origin, pathname } = new URL(url)
  return `${origin}${pathname}`
}

const objectIn = (body: Buffer): Record<string, unknown> => parseJsonObject(withoutBom(body.toString())) ?? {}
