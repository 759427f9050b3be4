import type { Outbound } from '../../../base/outbound/index.ts'
import { errors } from '../../../base/errors/index.ts'
import { UpstreamError } from '../../../../protocol/errors.ts'
import { parseIfJson } from '../../../../protocol/json.ts'
import { withoutBom } from '../../../../protocol/text.ts'
import { identityLimits } from '../../limits.ts'

/** A person's identity, as asserted by a provider. */
export interface Person {
  readonly provider: string
  /** The provider's identifier for the person, which the provider never assigns to another person. */
  readonly subject: string
  readonly email?: string
  /** Whether the provider has verified that the e-mail address belongs to the person. */
  readonly isEmailVerified: boolean
  readonly name?: string
  /** The groups of the person; undefined if the provider is not asked for them. */
  readonly groups?: readonly string[]
}

/** The parameters of an authorization request to a provider (OpenID Connect Core, section 3.1.2.1). */
export interface AuthorizationRequest {
  readonly state: string
  readonly nonce: string
  /** The PKCE code verifier (RFC 7636). */
  readonly codeVerifier: string
  readonly redirectUri: string
}

export interface CodeExchangeInput extends Omit<AuthorizationRequest, 'state'> { readonly code: string }

/**
 * An identity provider. Methods may throw UpstreamFailed or UpstreamSlow, whose messages contain no text that the
 * provider sent.
 */
export interface IdentityProvider {
  readonly id: string
  /** The display name. */
  readonly name: string
  /** Returns the URL to which the browser is redirected. */
  authorizationUrl: (request: AuthorizationRequest) => Promise<URL>
  /** Checks `iss` of an authorization response (RFC 9207). @throws Forbidden */
  checkIssuer: (iss: string | undefined) => Promise<void>
  /** Exchanges a code for the provider's claims about the person. @throws Forbidden if the claims cannot be trusted */
  identify: (response: CodeExchangeInput) => Promise<Person>
}

type Get = (url: string, headers?: Record<string, string>) => Promise<Record<string, unknown> | readonly unknown[]>
type Post = (url: string, fields: Record<string, string>, headers?: Record<string, string>) =>
Promise<Record<string, unknown>>

/** Sends requests to one provider, under the outbound rules for addresses from the configuration. */
export class ProviderClient {
  readonly #outbound: Outbound
  readonly #name: string

  constructor (outbound: Outbound, name: string) {
    this.#outbound = outbound
    this.#name = name
  }

  /** Fetches a JSON document. @throws UpstreamFailed, UpstreamSlow */
  readonly get: Get = async (url, headers = {}) =>
    await this.#fetch(url, { headers: { accept: 'application/json', ...headers } })

  /** Posts a form and returns the JSON response. @throws UpstreamFailed, UpstreamSlow */
  readonly post: Post = async (url, fields, headers = {}) => {
    const answer = await this.#fetch(url, {
      method: 'POST',
      headers: { accept: 'application/json', 'content-type': 'application/x-www-form-urlencoded', ...headers },
      body: new URLSearchParams(fields).toString()
    })
    if (Array.isArray(answer)) throw this.createFailure('returned something that is not a JSON object')
    return answer as Record<string, unknown>
  }

  /**
   * Creates the error for a failed request to the provider.
   * @param failure the end of a sentence that begins with the provider's name
   * @param cause the original error, only for the log, since it may contain addresses
   */
  createFailure (failure: string, cause?: unknown): Error {
    return Object.assign(new errors.UpstreamFailed(`The login provider ${this.#name} ${failure}`), { cause })
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
        throw this.createFailure('cannot be reached', error)
      })
    if (status < 200 || status > 299) throw this.createFailure(`answered with status ${status}`)
    const document = parseIfJson(withoutBom(body.toString()))
    if (typeof document === 'object' && document !== null) return document as Record<string, unknown>
    throw this.createFailure('returned something that is not a JSON object')
  }
}

/** Returns a non-empty string; undefined for any other value. */
export const nonEmptyText = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined

/** Returns a URL with parameters added to its query. */
export function withQuery (address: string, params: Readonly<Record<string, string | undefined>>): URL {
  const url = new URL(address)
  for (const [name, value] of Object.entries(params)) if (value !== undefined) url.searchParams.set(name, value)
  return url
}
