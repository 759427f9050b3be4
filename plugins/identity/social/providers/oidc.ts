import { createHash } from 'node:crypto'
import type { JWTVerifyGetKey } from 'jose'
import { errors } from '../../../base/errors/index.ts'
import type { Outbound } from '../../../base/outbound/index.ts'
import type { ClientCredentials, OidcSettings } from '../settings.ts'
import {
  type AuthorizationRequest, type CodeExchangeInput, type IdentityProvider, nonEmptyText, type Person, ProviderClient,
  withQuery
} from './provider.ts'
import { identityLimits } from '../../limits.ts'

/** The members of a provider's discovery document that are used (OpenID Connect Discovery, section 3). */
interface ProviderMetadata {
  readonly issuer: string
  readonly authorizationEndpoint: string
  readonly tokenEndpoint: string
  readonly userinfoEndpoint?: string
  readonly algorithms: string[]
  /** Whether the provider's authorization responses always contain `iss` (RFC 9207). */
  readonly sendsIssuer: boolean
  /** Whether the provider accepts the client's secret only in `Authorization`. */
  readonly isBasicOnly: boolean
  readonly keys: ProviderKeys
}

/** The public keys of a provider. */
interface ProviderKeys {
  /** Finds the key of a token. @throws UpstreamFailed, also if no key fits the token, and UpstreamSlow */
  readonly find: FindKey
  /**
   * Fetches the keys again, at a limited rate.
   * @returns whether they were fetched
   * @throws UpstreamFailed, UpstreamSlow
   */
  readonly renew: () => Promise<boolean>
}

type FindKey = (...token: Parameters<JWTVerifyGetKey>) => Promise<Awaited<ReturnType<JWTVerifyGetKey>>>

/** Whether a signature algorithm uses a public key. Algorithms with a shared secret, and `none`, are never accepted. */
const isAsymmetric = (alg: unknown): alg is string =>
  typeof alg === 'string' && /^(RS|PS|ES)(256|384|512)$|^EdDSA$|^Ed25519$/.test(alg)

/** An OpenID Connect provider, used with the authorization code flow. Its metadata is fetched on first use. */
export class OidcProvider implements IdentityProvider {
  readonly id: string
  readonly name: string
  readonly #settings: OidcSettings
  readonly #client: ProviderClient
  #metadata: Promise<ProviderMetadata> | undefined

  constructor (settings: OidcSettings, outbound: Outbound, name = settings.id) {
    this.id = settings.id
    this.name = name
    this.#settings = settings
    this.#client = new ProviderClient(outbound, name)
  }

  async authorizationUrl ({ state, nonce, codeVerifier, redirectUri }: AuthorizationRequest): Promise<URL> {
    const { clientId, scopes, pkce, prompt } = this.#settings
    const { authorizationEndpoint } = await this.#load()
    return withQuery(authorizationEndpoint, {
      response_type: 'code',
      client_id: clientId,
      redirect_uri: redirectUri,
      scope: scopes.join(' '),
      state,
      nonce,
      prompt,
      ...(pkce ? { code_challenge: codeChallenge(codeVerifier), code_challenge_method: 'S256' } : {})
    })
  }

  async checkIssuer (iss: string | undefined): Promise<void> {
    const { issuer, sendsIssuer } = await this.#load()
    if (iss === undefined ? sendsIssuer : iss !== issuer) {
      throw new errors.Forbidden('This response is from another login provider')
    }
  }

  async identify ({ code, codeVerifier, redirectUri, nonce }: CodeExchangeInput): Promise<Person> {
    const { clientId, clientSecret, groupsClaim, pkce } = this.#settings
    const metadata = await this.#load()
    const basic = Buffer.from(`${encodeURIComponent(clientId)}:${encodeURIComponent(clientSecret)}`).toString('base64')
    const tokens = await this.#client.post(
      metadata.tokenEndpoint,
      {
        grant_type: 'authorization_code',
        code,
        redirect_uri: redirectUri,
        ...(pkce ? { code_verifier: codeVerifier } : {}),
        ...(metadata.isBasicOnly ? {} : { client_id: clientId, client_secret: clientSecret })
      },
      metadata.isBasicOnly ? { authorization: `Basic ${basic}` } : {}
    )
    const claims = await this.#claimsOf(metadata, nonEmptyText(tokens.id_token), nonce)
    const subject = nonEmptyText(claims.sub)
    if (subject === undefined) throw this.#client.createFailure('does not identify its user')
    const accessToken = nonEmptyText(tokens.access_token)
    const isComplete = claims.email !== undefined && (groupsClaim === undefined || claims[groupsClaim] !== undefined)
    const info = !isComplete && metadata.userinfoEndpoint !== undefined && accessToken !== undefined
      ? await this.#userinfo(metadata.userinfoEndpoint, accessToken, subject)
      : {}
    // The address and its verification status are taken from the same document.
    const { email, email_verified: verified } = claims.email === undefined ? info : claims
    return {
      provider: this.id,
      subject,
      email: nonEmptyText(email),
      isEmailVerified: nonEmptyText(email) !== undefined && (verified === true || verified === 'true'),
      name: nonEmptyText(claims.name) ?? nonEmptyText(info.name),
      ...(groupsClaim !== undefined && { groups: groupsIn(claims[groupsClaim] ?? info[groupsClaim]) })
    }
  }

  /** Returns the verified claims of an ID token (OpenID Connect Core, section 3.1.3.7). @throws Forbidden */
  async #claimsOf (
    { issuer, algorithms, keys }: ProviderMetadata, token: string | undefined, nonce: string
  ): Promise<Record<string, unknown>> {
    const { verifyProviderIdToken } = await import('better-auth/oauth2')
    let keyError: unknown
    const jwks: FindKey = async (header, input) => await keys.find(header, input).catch((error: unknown) => {
      keyError = error
      throw error
    })
    const verifier = { idToken: { jwks, issuer, audience: this.#settings.clientId, algorithms } }
    const isValid = async (idToken: string): Promise<boolean> =>
      await verifyProviderIdToken(verifier as never, idToken, nonce)
    // A new key may have the id of a former one, or none.
    const isValidByNewKey = async (idToken: string): Promise<boolean> =>
      keyError === undefined && await keys.renew() && await isValid(idToken)
    if (token !== undefined && (await isValid(token) || await isValidByNewKey(token))) {
      const [, payload = ''] = token.split('.')
      const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<string, unknown>
      if (claims.azp === undefined || claims.azp === this.#settings.clientId) return claims
    }
    if (keyError !== undefined) throw keyError
    throw new errors.Forbidden(`The login provider ${this.name} returned no valid ID token`)
  }

  /**
   * Returns the claims of the userinfo endpoint.
   * @throws Forbidden if the claims are about another subject (OpenID Connect Core, section 5.3.2)
   */
  async #userinfo (url: string, accessToken: string, subject: string): Promise<Record<string, unknown>> {
    const info = await this.#client.get(url, { authorization: `Bearer ${accessToken}` }) as Record<string, unknown>
    if (info.sub !== subject) {
      throw new errors.Forbidden(
        `The login provider ${this.name} identifies two different users`
      )
    }
    return info
  }

  /** Returns the provider's metadata, read once; after a failure, the next login tries again. */
  async #load (): Promise<ProviderMetadata> {
    const loading = this.#metadata ??= this.#discover()
    try {
      return await loading
    } catch (error) {
      if (this.#metadata === loading) this.#metadata = undefined
      throw error
    }
  }

  async #discover (): Promise<ProviderMetadata> {
    const document = await this.#client.get(this.#settings.discoveryUrl) as Record<string, unknown>
    const address = (name: string): string | undefined => {
      const value = nonEmptyText(document[name])
      return value !== undefined && /^https?:\/\//i.test(value) && URL.canParse(value) ? value : undefined
    }
    const [issuer, authorizationEndpoint] = [nonEmptyText(document.issuer), address('authorization_endpoint')]
    const [tokenEndpoint, keys] = [address('token_endpoint'), address('jwks_uri')]
    if (issuer === undefined || authorizationEndpoint === undefined || tokenEndpoint === undefined ||
        keys === undefined) {
      throw this.#client.createFailure('has an incomplete discovery document')
    }
    const algorithms = listOf(document.id_token_signing_alg_values_supported).filter(isAsymmetric)
    const methods = listOf(document.token_endpoint_auth_methods_supported)
    return {
      issuer,
      authorizationEndpoint,
      tokenEndpoint,
      userinfoEndpoint: address('userinfo_endpoint'),
      algorithms: algorithms.length > 0 ? algorithms : ['RS256'],
      sendsIssuer: document.authorization_response_iss_parameter_supported === true,
      // Without a list of methods, `client_secret_basic` is the default.
      isBasicOnly: !methods.includes('client_secret_post'),
      keys: await keysOf(this.#client, keys)
    }
  }
}

/** Returns the groups in a claim: an array of strings, or one string; empty without the claim. */
const groupsIn = (claim: unknown): string[] =>
  (Array.isArray(claim) ? claim : [claim]).filter((group): group is string => nonEmptyText(group) !== undefined)

const listOf = (value: unknown): readonly unknown[] => Array.isArray(value) ? value : []

/** Returns the code challenge of a verifier (RFC 7636, section 4.2). */
export const codeChallenge = (verifier: string): string => createHash('sha256').update(verifier).digest('base64url')

/** Returns the settings of Google as an OpenID Connect provider. */
export const googleSettings = (client: ClientCredentials): OidcSettings => ({
  ...client,
  id: 'idp',
  discoveryUrl: 'https://accounts.google.com/.well-known/openid-configuration',
  scopes: ['openid', 'profile', 'email'],
  pkce: true
})

/**
 * Returns the public keys of a provider (RFC 7517). They are fetched again after ten minutes, and, at a limited rate,
 * for an unknown key id.
 */
async function keysOf (client: ProviderClient, url: string): Promise<ProviderKeys> {
  const { createRemoteJWKSet, customFetch, errors: { JOSEError } } = await import('jose')
  const remote = createRemoteJWKSet(new URL(url), {
    [customFetch]: async () => Response.json(await client.get(url)),
    cooldownDuration: identityLimits.social.keysAge
  })
  const fail = (error: unknown): never => {
    throw error instanceof JOSEError ? client.createFailure('signed with a key that it does not publish') : error
  }
  return {
    find: async (header, token) => await remote(header, token).catch(fail),
    renew: async () => {
      if (remote.coolingDown) return false
      await remote.reload().catch(fail)
      return true
    }
  }
}
