import { errors } from '../../../base/errors/index.ts'
import type { Outbound } from '../../../base/outbound/index.ts'
import type { ClientCredentials } from '../settings.ts'
import { codeChallenge } from './oidc.ts'
import {
  ProviderClient, nonEmptyText, withQuery, type AuthorizationRequest, type CodeExchangeInput, type IdentityProvider,
  type Person
} from './provider.ts'

/** The endpoints of GitHub. `api`: the base URL of its REST API. */
interface GithubEndpoints { readonly authorize: string, readonly token: string, readonly api: string }

const githubEndpoints: GithubEndpoints = {
  authorize: 'https://github.com/login/oauth/authorize',
  token: 'https://github.com/login/oauth/access_token',
  api: 'https://api.github.com'
}

/** The provider GitHub. It supports OAuth without OpenID Connect, so its REST API identifies the user. */
export class GithubProvider implements IdentityProvider {
  readonly id = 'codehost'
  readonly name = 'GitHub'
  readonly #credentials: ClientCredentials
  readonly #endpoints: GithubEndpoints
  readonly #client: ProviderClient

  constructor (credentials: ClientCredentials, outbound: Outbound, endpoints: GithubEndpoints = githubEndpoints) {
    this.#credentials = credentials
    this.#endpoints = endpoints
    this.#client = new ProviderClient(outbound, this.name)
  }

  async authorizationUrl ({ state, codeVerifier, redirectUri }: AuthorizationRequest): Promise<URL> {
    return withQuery(this.#endpoints.authorize, {
      client_id: this.#credentials.clientId,
      redirect_uri: redirectUri,
      scope: 'read:user user:email',
      state,
      code_challenge: codeChallenge(codeVerifier),
      code_challenge_method: 'S256'
    })
  }

  async checkIssuer (): Promise<void> {}

  async identify ({ code, codeVerifier, redirectUri }: CodeExchangeInput): Promise<Person> {
    const { clientId, clientSecret } = this.#credentials
    const tokens = await this.#client.post(this.#endpoints.token, {
      client_id: clientId,
      client_secret: clientSecret,
      code,
      redirect_uri: redirectUri,
      code_verifier: codeVerifier
    })
    const token = nonEmptyText(tokens.access_token)
    if (token === undefined) throw new errors.Forbidden('GitHub rejected the code of this login')
    const headers = { authorization: `Bearer ${token}`, 'x-github-api-version': '2022-11-28' }
    const [user, emails] = await Promise.all([
      this.#client.get(`${this.#endpoints.api}/user`, headers),
      this.#client.get(`${this.#endpoints.api}/user/emails`, headers)
    ])
    // The numeric id of an account is permanent; its name can be released and taken by another user.
    const id: unknown = 'id' in user ? user.id : undefined
    if (typeof id !== 'number' || !Number.isSafeInteger(id)) {
      throw this.#client.createFailure('does not identify its user')
    }
    const primary = (Array.isArray(emails) ? emails as Array<Record<string, unknown> | null> : []).find((each) =>
      each?.primary === true)
    const email = nonEmptyText(primary?.email)
    return {
      provider: this.id,
      subject: String(id),
      email,
      isEmailVerified: email !== undefined && primary?.verified === true,
      name: nonEmptyText('login' in user ? user.login : undefined)
    }
  }
}
