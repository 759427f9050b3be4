import type { Outbound } from '../../../base/outbound/index.ts'
import { errors } from '../../../base/errors/index.ts'
import { UpstreamError } from '../../../../protocol/errors.ts'
import { withoutBom } from '../../../../protocol/text.ts'
import { identityLimits } from '../../limits.ts'

/** A person's identity, as a provider vouches for it. */
export interface Person {
  readonly provider: string
  /** The provider's name of the person, which is never given to another one. */
  readonly subject: string
  readonly email?: string
  /** Whether the provider has checked that the address is the person's. */
  readonly isVerified: boolean
  readonly name?: string
}

/** A request to a provider to say who its user is (OpenID Connect Core, section 3.1.2.1). */
export interface AuthorizationRequest {
  readonly state: string
  readonly nonce: string
  /** Of PKCE (RFC 7636). */
  readonly codeVerifier: string
  readonly redirectUri: string
}

/** A provider's answer to it. */
export interface AuthorizationResponse extends Omit<AuthorizationRequest, 'state'> { readonly code: string }

/**
 * A provider of identities. Every method may throw UpstreamFailed or UpstreamSlow, whose sentences hold nothing that
 * the provider sent.
 */
export interface IdentityProvider {
  readonly id: string
  /** For people. */
  readonly name: string
  /** Where the browser is sent. */
  authorizationUrl: (request: AuthorizationRequest) => Promise<URL>
  /** Checks `iss` of a response (RFC 9207). @throws Forbidden */
  checkIssuer: (iss: string | undefined) => Promise<void>
  /** Trades the code for what the provider says of its user. @throws Forbidden where its word cannot be relied on */
  identify: (response: AuthorizationResponse) => Promise<Person>
}

type Get = (url: string, headers?: Record<string, string>) => Promise<Record<string, unknown> | readonly unknown[]>
type Post = (url: string, fields: Record<string, string>, headers?: Record<string, string>) =>
Promise<Record<string, unknown>>

/** Requests to one provider, under the outbound rules for addresses that an admin configured. */
export class ProviderClient {
  readonly #outbound: Outbound
  readonly #name: string

  constructor (outbound: Outbound, name: string) {
    this.#outbound = outbound
    this.#name = name
  }

  /** A JSON document. @throws UpstreamFailed, UpstreamSlow */
  readonly get: Get = async (url, headers = {}) =>
    await this.#fetch(url, { headers: { accept: 'application/json', ...headers } })

  /** The JSON answer to a form. @throws UpstreamFailed, UpstreamSlow */
  readonly post: Post = async (url, fields, headers = {}) => {
    const answer = await this.#fetch(url, {
      method: 'POST',
      headers: { accept: 'application/json', 'content-type': 'application/x-www-form-urlencoded', ...headers },
      body: new URLSearchParams(fields).toString()
    })
    if (Array.isArray(answer)) throw this.failure('gave an answer that is no JSON object')
    return answer as Record<string, unknown>
  }

  /** @param what the provider did, as the end of a sentence @param cause for the log: it may name addresses */
  failure (what: string, cause?: unknown): Error {
    return Object.assign(new errors.UpstreamFailed(`The login provider ${this.#name} ${what}`), { cause })
  }

  async #fetch (
    url: string,
    options: { method?: 'POST', headers: Record<string, string>, body?: string }
  ): Promise<Record<string, unknown> | readonly unknown[]> {
    const { status, body } = await this.#outbound
      .fetch(url,
        { trusted: true, maxSize: identityLimits.social.answer, timeout: identityLimits.social.timeout, ...options })
      .catch((error: unknown) => {
        if (!(error instanceof UpstreamError)) throw error
        if (error.fault === 'timeout') {
          throw new errors.UpstreamSlow(`The login provider ${this.#name} did not answer in time`)
        }
        throw this.failure('cannot be reached', error)
      })
    if (status < 200 || status > 299) throw this.failure(`answered with status ${status}`)
    try {
      const json: unknown = JSON.parse(withoutBom(body.toString()))
      if (typeof json === 'object' && json !== null) return json as Record<string, unknown>
    } catch {}
    throw this.failure('gave an answer that is no JSON object')
  }
}

/** A text that says something. */
export const nonEmptyText = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined

/** An address with parameters in its query, beside those that it has. */
export function withQuery (address: string, params: Readonly<Record<string, string | undefined>>): URL {
  const url = new URL(address)
  for (const [name, value] of Object.entries(params)) if (value !== undefined) url.searchParams.set(name, value)
  return url
}
