import { generateKeyPairSync } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import {
  Provider, errors as failures, interactionPolicy, type Configuration, type KoaContextWithOIDC
} from 'oidc-provider'
import { StorageError } from '../../../../db/store.ts'
import { credentialPrefixes } from '../../../../schemas/credential-prefixes.ts'
import { errors } from '../../../base/errors/index.ts'
import type { Outbound } from '../../../base/outbound/index.ts'
import { matchesHash } from '../clients.ts'
import { issuerPath, resourcePath } from '../identifiers.ts'
import { documentsAllowed, type OAuthSettings } from '../settings.ts'
import { adapterOn, isRefreshable, type AuthorizationStorage } from './adapter.ts'
import { answerAway, correct, type CorrectionDeps } from './corrections.ts'
import { checkDocument, fetchFor } from './documents.ts'
import { loadGrant, type RememberedConsent } from './grants.ts'
import { identityLimits } from '../../limits.ts'

export interface ProviderDeps extends CorrectionDeps {
  readonly storage: AuthorizationStorage
  readonly settings: () => OAuthSettings
  readonly outbound: Pick<Outbound, 'fetch'>
  /** The path of a page that asks a user, below the host. */
  readonly interactionPath: (issuer: string, uid: string) => string
  /** The scopes that a client may be granted. */
  readonly scopesOf: (clientId: string) => Promise<readonly string[]>
  readonly consent: RememberedConsent
  /**
   * Checks the secret of a client, unless there were too many failures.
   * @throws TooManyFailures, TooManyRequests, StorageAway
   */
  readonly checkSecret: (raw: IncomingMessage, clientId: string, check: () => boolean) => Promise<boolean>
  /** Counts a registration of a client. @throws TooManyRequests, StorageAway */
  readonly countRegistration: (raw: IncomingMessage) => Promise<void>
  readonly log: (error: unknown, sentence: string) => void
}

/** Lifetimes of what a browser holds, in seconds. */
const sessionLifetime = 8 * 3_600
const interactionLifetime = 10 * 60

/**
 * The library that runs the endpoints of authorization, token and revocation, for one issuer. It was made for OpenID
 * Connect: where its behaviour differs from OAuth 2.1, `corrections.ts` changes it, and no ID tokens are issued.
 */
export function createProvider (issuer: string, deps: ProviderDeps): Provider {
  const { storage, settings, outbound } = deps
  /** Requests for which a document was fetched. */
  const fetched = new WeakSet<IncomingMessage>()
  const provider: Provider = new Provider(issuer, {
    adapter: adapterOn(storage),
    routes: { authorization: '/oauth/authorize', token: '/oauth/token', revocation: '/oauth/revoke' },
    clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post'],
    responseTypes: ['code'],
    // Signs nothing, but has to be there.
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
    // Checked where the library knows the redirect URI already.
    extraParams: {
      state: async (ctx, value, { clientId }) => {
        if (settings().requireState && value === undefined) {
          throw new failures.InvalidRequest('missing required parameter "state"')
        }
        // The user would be asked to allow nothing.
        const [possible, asked] = [await deps.scopesOf(clientId), ctx.oidc.requestParamScopes]
        if (possible.some((scope) => asked.has(scope))) return
        throw new failures.InvalidScope('no scope that this client can be granted was asked for', [...asked].join(' '))
      }
    },
    allowOmittingSingleRegisteredRedirectUri: false,
    rotateRefreshToken: true,
    issueRefreshToken: (ctx) => isRefreshable(ctx),
    expiresWithSession: () => false,
    clientBasedCORS: () => true,
    cookies: cookiesOf(issuer),
    interactions: { policy: policy(), url: (_ctx, { uid }) => deps.interactionPath(issuer, uid) },
    findAccount: (ctx, id) => findAccount(ctx, id, storage),
    loadExistingGrant: async (ctx) => await loadGrant(provider, ctx, deps.consent),
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
        checkDocument(metadata)
      }
    },
    fetch: async (input) => await fetchFor(outbound, String(input)),
    fetchResponseBodyLimits: { 'client_id metadata document': identityLimits.oauth.document },
    // `correct` makes the page.
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
        // Without a request, the library reads a document that was fetched before.
        allowFetch: async (ctx: KoaContextWithOIDC | undefined) => {
          if (!documentsAllowed(settings())) return false
          if (!ctx) return true
          // The library looks for the client again to tell it of an error, also of the one that its document cannot be
          // had.
          if (fetched.has(ctx.req)) return false
          fetched.add(ctx.req)
          await countFetch(deps, ctx)
          return true
        },
        allowClient: () => documentsAllowed(settings())
      },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        defaultResource: (_ctx, _client, oneOf) => oneOf?.[0] ?? issuer,
        getResourceServerInfo: async (_ctx, resource, client) => {
          if (resourcePath(issuer, resource) === undefined) {
            throw new failures.InvalidTarget('"resource" is not one of this gateway')
          }
          return {
            scope: (await deps.scopesOf(client.clientId)).join(' '), audience: resource, accessTokenFormat: 'opaque'
          }
        }
      }
    }
  } satisfies Configuration)
  // The address and the protocol of requests are those of the issuer: `handOver` sets them.
  provider.proxy = true
  prefixTokens(provider.AccessToken, credentialPrefixes.token)
  prefixTokens(provider.RefreshToken, credentialPrefixes.refresh)
  // The stored secret is a hash.
  provider.Client.prototype.compareClientSecret = async function (actual: string) {
    return await checkSecret(deps, this.clientId, () => matchesHash(actual, this.clientSecret))
  }
  provider.use(async (ctx, next) => {
    // The library finds the path of the issuer in the URL of the request only if the query is unchanged.
    ctx.mountPath = issuerPath(issuer)
    await correct(ctx, next, deps)
  })
  provider.on('server_error', (ctx, error) => {
    deps.log(error, 'a request to the authorization server failed')
    if (error instanceof StorageError || error instanceof errors.StorageAway) answerAway(ctx)
  })
  return provider
}

/** Makes the tokens of a kind begin as credentials of this gateway do. */
function prefixTokens (Kind: { prototype: object }, prefix: string): void {
  const made = Kind.prototype as { generateTokenId: () => string }
  const { generateTokenId } = made
  made.generateTokenId = function () { return `${prefix}${generateTokenId.call(this)}` }
}

/** A limit that was reached, in the library's terms. */
class TooMany extends failures.OIDCProviderError {
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
    throw new TooMany('Too many requests with a wrong secret, or at the same time; try again later')
  }
}

/** Counts a document to be fetched as a registration of its client. @throws TooMany */
async function countFetch ({ countRegistration }: ProviderDeps, ctx: KoaContextWithOIDC): Promise<void> {
  try {
    await countRegistration(ctx.req)
  } catch (error) {
    if (!(error instanceof errors.TooManyRequests)) throw error
    ctx.set('retry-after', String('retryAfter' in error ? error.retryAfter : 60))
    throw new TooMany('Too many clients were registered from this address; try again later')
  }
}

function cookiesOf (issuer: string): Configuration['cookies'] {
  const { protocol, pathname } = new URL(issuer)
  const options = { httpOnly: true, sameSite: 'lax', signed: false, secure: protocol === 'https:' } as const
  // The prefix ties a cookie to this host and to the path `/`.
  const prefix = protocol === 'https:' && pathname === '/' ? '__Host-' : ''
  return {
    names: { session: `${prefix}tool-hub-session`, interaction: 'tool-hub-interaction', resume: 'tool-hub-resume' },
    // Cookies do not tell ports apart: with the path `/`, a client on this computer would get the session with its
    // code.
    long: { ...options, path: prefix === '' ? `${pathname.replace(/\/$/, '')}/oauth` : pathname },
    short: options
  }
}

/**
 * The library's reasons to ask a user, without the one that asks again for each client on the user's device:
 * `loadGrant` decides.
 */
function policy (): ReturnType<typeof interactionPolicy.base> {
  const prompts = interactionPolicy.base()
  prompts.get('consent')?.checks.remove('native_client_prompt')
  return prompts
}

function findAccount (ctx: KoaContextWithOIDC, id: string, storage: AuthorizationStorage) {
  if (storage.stands(id)) return { accountId: id, claims: () => ({ sub: id }) }
  // A session ends with its account, so this is a login that was overtaken by a change.
  if (ctx.oidc.route === 'resume') throw new failures.AccessDenied('the account was changed meanwhile')
  return undefined
}
