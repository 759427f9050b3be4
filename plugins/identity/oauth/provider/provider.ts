import { generateKeyPairSync } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import {
  Provider, errors as failures, interactionPolicy, type Configuration, type KoaContextWithOIDC
} from 'oidc-provider'
import { StorageError } from '../../../../db/store.ts'
import { ownCredentialPrefixes } from '../../../../schemas/credential-prefixes.ts'
import { errors } from '../../../base/errors/index.ts'
import type { Outbound } from '../../../base/outbound/index.ts'
import { matchesHash } from '../clients.ts'
import { issuerPath, resourcePath } from '../identifiers.ts'
import { allowsClientMetadataDocuments, type OAuthSettings } from '../settings.ts'
import { createAdapterFactory, canGetRefreshToken, type AuthorizationStorage } from './adapter.ts'
import { answerUnavailable, correctRequestAndResponse, type CorrectionDeps } from './corrections.ts'
import { adaptClientMetadataDocument, fetchClientMetadataDocument } from './documents.ts'
import { loadGrant, type FindConsent } from './grants.ts'
import { identityLimits } from '../../limits.ts'

export interface ProviderDeps extends CorrectionDeps {
  readonly storage: AuthorizationStorage
  readonly settings: () => OAuthSettings
  readonly outbound: Pick<Outbound, 'fetch'>
  /** Returns the absolute path of an interaction's page on the host of the issuer. */
  readonly interactionPath: (issuer: string, uid: string) => string
  /** Returns the scopes that a client may be granted. */
  readonly scopesOf: (clientId: string) => Promise<readonly string[]>
  readonly findConsent: FindConsent
  /**
   * Checks a client's secret, unless too many checks have failed.
   * @throws TooManyFailures, TooManyRequests, StorageAway
   */
  readonly checkSecret: (raw: IncomingMessage, clientId: string, check: () => boolean) => Promise<boolean>
  /** Counts a client registration from the address of a request. @throws TooManyRequests, StorageAway */
  readonly countRegistration: (raw: IncomingMessage) => Promise<void>
  readonly log: (error: unknown, sentence: string) => void
}

/** The lifetimes of a browser's login session and of an interaction, in seconds. */
const sessionLifetime = 8 * 3_600
const interactionLifetime = 10 * 60

/**
 * Creates an oidc-provider instance for one issuer, which serves the authorization, token and revocation endpoints. The
 * library implements OpenID Connect; `corrections.ts` adjusts what differs from OAuth 2.1, and removes ID tokens.
 */
export function createProvider (issuer: string, deps: ProviderDeps): Provider {
  const { storage, settings, outbound } = deps
  /** Requests for which a client metadata document was fetched, successfully or not. */
  const fetched = new WeakSet<IncomingMessage>()
  const provider: Provider = new Provider(issuer, {
    adapter: createAdapterFactory(storage, { issuer, allowedScopes: () => settings().allowedScopes }),
    routes: { authorization: '/oauth/authorize', token: '/oauth/token', revocation: '/oauth/revoke' },
    clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post'],
    responseTypes: ['code'],
    // The library requires a key, although nothing is signed with it.
    jwks: {
      keys: [{
        ...generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
          .export({ format: 'jwk' }),
        use: 'sig',
        alg: 'ES256'
      }]
    },
    clientDefaults: {
      id_token_signed_response_alg: 'ES256',
      application_type: 'native',
      grant_types: ['authorization_code', 'refresh_token']
    },
    scopes: ['openid', 'profile', 'mcp'],
    pkce: { required: () => true },
    // This hook runs after the library has validated the redirect URI.
    extraParams: {
      state: async (ctx, value, { clientId }) => {
        if (settings().requireState && value === undefined) {
          throw new failures.InvalidRequest('missing required parameter "state"')
        }
        // If none of the requested scopes can be granted, the consent page would be empty.
        const [possible, asked] = [await deps.scopesOf(clientId), ctx.oidc.requestParamScopes]
        if (possible.some((scope) => asked.has(scope))) return
        throw new failures.InvalidScope('none of the requested scopes is available to this ' +
          'client', [...asked].join(' '))
      }
    },
    allowOmittingSingleRegisteredRedirectUri: false,
    rotateRefreshToken: true,
    issueRefreshToken: (ctx) => canGetRefreshToken(ctx),
    expiresWithSession: () => false,
    clientBasedCORS: () => true,
    cookies: cookiesOf(issuer),
    interactions: { policy: promptPolicy(), url: (_ctx, { uid }) => deps.interactionPath(issuer, uid) },
    findAccount: (ctx, id) => findAccount(ctx, id, storage),
    loadExistingGrant: async (ctx) => await loadGrant(provider, ctx, deps.findConsent),
    ttl: {
      AccessToken: () => settings().accessTokenLifetime,
      RefreshToken: () => settings().refreshTokenLifetime,
      AuthorizationCode: () => settings().authorizationCodeLifetime,
      Session: sessionLifetime,
      Interaction: interactionLifetime,
      Grant: interactionLifetime,
      IdToken: 60
    },
    extraClientMetadata: {
      properties: ['redirect_uris'],
      validator: (_ctx, _key, _value, metadata) => {
        adaptClientMetadataDocument(metadata, settings())
      }
    },
    fetch: async (input) => await fetchClientMetadataDocument(outbound, String(input)),
    fetchResponseBodyLimits: { 'client_id metadata document': identityLimits.oauth.document },
    // `correctRequestAndResponse` renders the page.
    renderError: (ctx, out) => {
      ctx.state.problem = out
    },
    features: {
      devInteractions: { enabled: false },
      rpInitiatedLogout: { enabled: false },
      userinfo: { enabled: false },
      dPoP: { enabled: false },
      pushedAuthorizationRequests: { enabled: false },
      revocation: { enabled: true, allowedPolicy: (_ctx, client, token) => client.clientId === token.clientId },
      clientIdMetadataDocument: {
        enabled: true,
        ack: 'draft-02',
        // Without a request, the library uses a document that was fetched earlier.
        allowFetch: async (ctx: KoaContextWithOIDC | undefined) => {
          if (!allowsClientMetadataDocuments(settings())) return false
          if (!ctx) return true
          // After an error, the library looks up the client again, to report the error to the client, even if the
          // error is that the client's document cannot be fetched.
          if (fetched.has(ctx.req)) return false
          fetched.add(ctx.req)
          await countFetch(deps, ctx)
          return true
        },
        allowClient: () => allowsClientMetadataDocuments(settings())
      },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        defaultResource: (_ctx, _client, oneOf) => oneOf?.[0] ?? issuer,
        getResourceServerInfo: async (_ctx, resource, client) => {
          if (resourcePath(issuer, resource) === undefined) {
            throw new failures.InvalidTarget('"resource" is not a resource of this gateway')
          }
          return {
            scope: (await deps.scopesOf(client.clientId)).join(' '), audience: resource, accessTokenFormat: 'opaque'
          }
        }
      }
    }
  } satisfies Configuration)
  // Trusts the forwarded host and protocol of requests: `passToProvider` sets them to those of the issuer.
  provider.proxy = true
  prefixTokens(provider.AccessToken, ownCredentialPrefixes.token)
  prefixTokens(provider.RefreshToken, ownCredentialPrefixes.refresh)
  // The stored secret is a hash.
  provider.Client.prototype.compareClientSecret = async function (actual: string) {
    return await checkSecret(deps, this.clientId, () => matchesHash(actual, this.clientSecret))
  }
  provider.use(async (ctx, next) => {
    // The library would derive the mount path from the request URL, but cannot once `correctRequestAndResponse` has
    // changed the query.
    ctx.mountPath = issuerPath(issuer)
    await correctRequestAndResponse(ctx, next, deps)
  })
  provider.on('server_error', (ctx, error) => {
    deps.log(error, 'a request to the authorization server failed')
    if (error instanceof StorageError || error instanceof errors.StorageAway) answerUnavailable(ctx)
  })
  return provider
}

/** Makes new tokens of a kind begin with a prefix. */
function prefixTokens (Kind: { prototype: object }, prefix: string): void {
  const prototype = Kind.prototype as { generateTokenId: () => string }
  const { generateTokenId } = prototype
  prototype.generateTokenId = function () { return `${prefix}${generateTokenId.call(this)}` }
}

/** An error of oidc-provider's error class, for a request beyond a rate limit. */
class TooManyRequestsError extends failures.OIDCProviderError {
  constructor (description: string) {
    super(429, 'temporarily_unavailable')
    this.error_description = description
  }
}

async function checkSecret ({ checkSecret }: ProviderDeps, clientId: string, check: () => boolean): Promise<boolean> {
  const ctx = Provider.ctx
  if (!ctx) throw new Error('a secret was checked outside of a request')
  try {
    return await checkSecret(ctx.req, clientId, check)
  } catch (error) {
    if (!(error instanceof errors.TooManyFailures || error instanceof errors.TooManyRequests)) throw error
    ctx.set('retry-after', String('retryAfter' in error ? error.retryAfter : 60))
    throw new TooManyRequestsError('Too many requests with a wrong secret, or at the same time; try again later')
  }
}

/** Counts the fetch of a client metadata document as a registration. @throws TooManyRequestsError */
async function countFetch ({ countRegistration }: ProviderDeps, ctx: KoaContextWithOIDC): Promise<void> {
  try {
    await countRegistration(ctx.req)
  } catch (error) {
    if (!(error instanceof errors.TooManyRequests)) throw error
    ctx.set('retry-after', String('retryAfter' in error ? error.retryAfter : 60))
    throw new TooManyRequestsError('Too many clients were registered from this address; try again later')
  }
}

function cookiesOf (issuer: string): Configuration['cookies'] {
  const { protocol, pathname } = new URL(issuer)
  const options = { httpOnly: true, sameSite: 'lax', signed: false, secure: protocol === 'https:' } as const
  // The `__Host-` prefix binds a cookie to this host and to the path `/`.
  const prefix = protocol === 'https:' && pathname === '/' ? '__Host-' : ''
  return {
    names: { session: `${prefix}tool-hub-session`, interaction: 'tool-hub-interaction', resume: 'tool-hub-resume' },
    // Cookies do not distinguish ports: with the path `/`, a client that listens on this machine would receive the
    // session cookie together with its code.
    long: { ...options, path: prefix === '' ? `${pathname.replace(/\/$/, '')}/oauth` : pathname },
    short: options
  }
}

/**
 * Returns the default prompt policy of oidc-provider without the check that asks for consent at each authorization of a
 * native client; `loadGrant` decides whether the user is asked.
 */
function promptPolicy (): ReturnType<typeof interactionPolicy.base> {
  const prompts = interactionPolicy.base()
  prompts.get('consent')?.checks.remove('native_client_prompt')
  return prompts
}

function findAccount (ctx: KoaContextWithOIDC, id: string, storage: AuthorizationStorage) {
  if (storage.isAccountValid(id)) return { accountId: id, claims: () => ({ sub: id }) }
  // Sessions of changed accounts are not loaded, so the account changed during this login.
  if (ctx.oidc.route === 'resume') throw new failures.AccessDenied('the account was changed in the meantime')
  return undefined
}
