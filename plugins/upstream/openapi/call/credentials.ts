import { UpstreamError } from '../../../../protocol/errors.ts'
import { isObject } from '../../../../protocol/json.ts'
import { securityOf, type OpenApiSecurity } from '../../../../schemas/openapi-upstream.ts'
import { limits } from '../../../limits/index.ts'
import type { Outbound, Reach } from '../../../outbound/outbound.ts'
import { toHeader } from '../headers.ts'
import type { SecurityDefaults } from '../plan.ts'
import type { ApiRequest } from './request.ts'
import { percentEncode } from './values.ts'

type Members = ReturnType<typeof securityOf>
/** A token, and when it should no longer be used, in ms since the epoch. */
interface Token { text: string, until: number }

/** A token is renewed so long before its end, in ms. */
const margin = 30_000
const discovery = '/.well-known/openid-configuration'

/** What authorizes the calls of one API. Tokens are fetched when they are first needed, once for all who wait, and kept. */
export class Credentials {
  readonly #security: Members
  readonly #outbound: Outbound
  readonly #reach: Reach
  #token: Token | undefined
  #fetching: Promise<Token> | undefined
  #endpoint: string | undefined
  /** The endpoint wants the client's secret in the body, not in a header. */
  #inBody = false

  constructor (security: OpenApiSecurity | undefined, outbound: Outbound, reach: Reach) {
    this.#security = securityOf(security ?? { type: 'none' })
    this.#outbound = outbound
    this.#reach = reach
  }

  /**
   * Adds the credentials to a request. A header that it has already stays.
   * @returns the token that was used, where it can be renewed
   * @throws UpstreamError when no token can be had
   */
  async authorize (request: ApiRequest, hints: SecurityDefaults): Promise<string | undefined> {
    const { type, token } = this.#security
    if (type === 'none') return undefined
    if (type === 'apiKey') {
      this.#apiKey(request, hints)
      return undefined
    }
    if (request.headers.has('authorization')) return undefined
    if (type === 'http') {
      request.headers.set(...toHeader('authorization', this.#http()))
      return undefined
    }
    const fetched = token === undefined ? (await this.#fresh(hints)).text : undefined
    request.headers.set(...toHeader('authorization', `Bearer ${token ?? fetched}`))
    return fetched
  }

  /** The API did not take this token: the next request gets a new one. */
  invalidate (token: string): void {
    if (this.#token?.text === token) this.#token = undefined
  }

  #apiKey ({ headers, query, configuredQuery: ownQuery, cookies }: ApiRequest, { apiKey }: SecurityDefaults): void {
    const { name = apiKey?.name, in: place = apiKey?.in ?? 'header', value = '' } = this.#security
    if (name === undefined) {
      throw new UpstreamError('refused', '"openapi.security" of type "apiKey" needs a "name": the description does not say it')
    }
    if (place === 'query') {
      const pair = `${percentEncode(name)}=${percentEncode(value)}`
      query.push(pair)
      ownQuery.push(pair)
    } else if (place === 'cookie') cookies.push(toHeader('cookie', `${name}=${percentEncode(value)}`)[1])
    else if (!headers.has(name.toLowerCase())) headers.set(...toHeader(name, value))
  }

  #http (): string {
    const { scheme, token, username = '', password = '', credentials } = this.#security
    const kind = scheme?.toLowerCase() ?? (token === undefined ? 'basic' : 'bearer')
    if (kind === 'basic') {
      return `Basic ${credentials === undefined ? base64(`${username}:${password}`) : credentials.includes(':') ? base64(credentials) : credentials}`
    }
    return `${kind === 'bearer' ? 'Bearer' : scheme} ${token ?? credentials ?? ''}`
  }

  async #fresh (hints: SecurityDefaults): Promise<Token> {
    if (this.#token && this.#token.until > Date.now()) return this.#token
    this.#fetching ??= this.#fetch(hints).finally(() => {
      this.#fetching = undefined
    })
    this.#token = await this.#fetching
    return this.#token
  }

  /** A token by client credentials (RFC 6749 §4.4). */
  async #fetch (hints: SecurityDefaults): Promise<Token> {
    this.#endpoint ??= await this.#find(hints)
    const first = await this.#ask(this.#endpoint, this.#inBody)
    // Endpoints must take the header, and some take the body only (§2.3.1).
    const answer = first.status === 400 || first.status === 401 ? await this.#ask(this.#endpoint, !this.#inBody) : first
    if (answer !== first && answer.status === 200) this.#inBody = !this.#inBody
    const { access_token: text, expires_in: lifetime } = parsed(answer.body)
    if (answer.status !== 200 || typeof text !== 'string' || text === '') {
      throw new UpstreamError(
        'refused',
        `the token endpoint ${withoutQuery(this.#endpoint)} gave no token (HTTP ${first.status}): check "clientId", "clientSecret" and "scopes"`
      )
    }
    const seconds = Number(lifetime)
    return {
      text,
      until: lifetime !== undefined && Number.isFinite(seconds) ? Date.now() + Math.max(seconds * 1_000 - margin, seconds * 500) : Infinity
    }
  }

  async #ask (endpoint: string, inBody: boolean): Promise<{ status: number; body: Buffer }> {
    const { clientId = '', clientSecret = '', scopes = [] } = this.#security
    const body = new URLSearchParams({ grant_type: 'client_credentials' })
    if (scopes.length > 0) body.set('scope', scopes.join(' '))
    if (inBody) {
      body.set('client_id', clientId)
      body.set('client_secret', clientSecret)
    }
    const authorization = `Basic ${base64(`${formEncoded(clientId)}:${formEncoded(clientSecret)}`)}`
    const headers = {
      'content-type': 'application/x-www-form-urlencoded',
      accept: 'application/json',
      ...(inBody ? {} : { authorization })
    }
    return await this.#request(endpoint, 'the token endpoint', { method: 'POST', headers, body: body.toString() })
  }

  async #find (hints: SecurityDefaults): Promise<string> {
    const { type, tokenUrl = hints.tokenUrl, url = hints.openIdConnectUrl } = this.#security
    if (type === 'oauth2') {
      if (tokenUrl === undefined) {
        throw new UpstreamError('refused', '"openapi.security" of type "oauth2" needs a "tokenUrl": the description does not say it')
      }
      return tokenUrl
    }
    if (url === undefined) {
      throw new UpstreamError('refused', '"openapi.security" of type "openIdConnect" needs a "url": the description does not say it')
    }
    const address = url.includes('/.well-known/') ? url : `${url.replace(/\/$/, '')}${discovery}`
    const answer = await this.#request(address, 'the discovery document', { method: 'GET', headers: { accept: 'application/json' } })
    const { token_endpoint: endpoint } = parsed(answer.body)
    if (answer.status !== 200 || typeof endpoint !== 'string') {
      throw new UpstreamError('refused', `the discovery document ${withoutQuery(address)} names no token endpoint (HTTP ${answer.status})`)
    }
    return endpoint
  }

  async #request (
    address: string,
    what: string,
    options: { method: 'GET' | 'POST'; headers: Record<string, string>; body?: string }
  ): Promise<{ status: number; body: Buffer }> {
    if (!URL.canParse(address)) throw new UpstreamError('refused', `${what} is not an absolute http or https address`)
    try {
      return await this.#outbound.fetch(address, {
        ...this.#reach,
        ...options,
        maxSize: limits.openapi.token,
        timeout: limits.openapi.tokenTime
      })
    } catch (error) {
      throw error instanceof UpstreamError
        ? new UpstreamError('refused', `${what} ${withoutQuery(address)} cannot be asked: ${error.message}`)
        : error
    }
  }
}

const base64 = (text: string): string => Buffer.from(text).toString('base64')
const formEncoded = (text: string): string => new URLSearchParams({ '': text }).toString().slice(1)

/** An address without what may be secret in it. */
export function withoutQuery (address: string): string {
  const { origin, pathname } = new URL(address)
  return `${origin}${pathname}`
}

function parsed (body: Buffer): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(body.toString())
    return isObject(value) ? value : {}
  } catch {
    return {}
  }
}
