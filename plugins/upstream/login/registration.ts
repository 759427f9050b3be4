import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js'
import { UpstreamError } from '../../../protocol/errors.ts'
import type { UpstreamOAuth } from '../../../schemas/upstream-oauth.ts'
import type { AuthorizationDiscovery } from './discovery.ts'
import { authorizationFailure, oauthErrorCodeOf } from './problems.ts'
import { loadSdk } from './sdk.ts'
import type { UpstreamOAuthClient, StoredRegistration } from './stored.ts'

/** How the gateway presents itself as an OAuth client to authorization servers. */
export interface GatewayAsOAuthClient {
  readonly baseUrl: string
  /** The URI that authorization servers redirect the browser to. */
  readonly redirectUri: string
  /** The URL of the gateway's Client ID Metadata Document; undefined if the base URL is not https. */
  readonly documentUrl: string | undefined
}

/** Returns the client metadata of the gateway (RFC 7591, section 2). */
const clientMetadata = ({ baseUrl, redirectUri }: GatewayAsOAuthClient) => ({
  client_name: 'Tool-Hub',
  client_uri: baseUrl,
  redirect_uris: [redirectUri],
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
  // Only native clients may have an http redirect URI, on a loopback address (OpenID Connect Registration, section 2).
  application_type: redirectUri.startsWith('https:') ? 'web' : 'native'
})

/** Creates the gateway's Client ID Metadata Document (draft-ietf-oauth-client-id-metadata-document). */
export const createClientIdMetadataDocument = (self: GatewayAsOAuthClient): Record<string, unknown> => ({
  client_id: self.documentUrl,
  ...clientMetadata(self),
  token_endpoint_auth_method: 'none'
})

/**
 * Returns the client that the gateway uses without registration: the one in the config, or the gateway's Client ID
 * Metadata Document if the authorization server supports such documents; undefined if the gateway must register.
 */
export function clientWithoutRegistration (
  oauth: UpstreamOAuth, { server: { metadata } }: AuthorizationDiscovery, self: GatewayAsOAuthClient
): UpstreamOAuthClient | undefined {
  if (oauth.clientId !== undefined) {
    return { id: oauth.clientId, ...(oauth.clientSecret === undefined ? {} : { secret: oauth.clientSecret }) }
  }
  const takesDocuments = metadata?.client_id_metadata_document_supported === true
  return takesDocuments && self.documentUrl !== undefined ? { id: self.documentUrl, method: 'none' } : undefined
}

/** Returns the reason why the gateway cannot register itself, as a clause; undefined if none is known. */
export function registrationObstacle (
  { server: { url, metadata } }: Pick<AuthorizationDiscovery, 'server'>,
  { dynamicRegistration }: UpstreamOAuth
): string | undefined {
  if (dynamicRegistration?.enabled === false) return '"oauth.dynamicRegistration.enabled" is false'
  const isRefused = metadata && metadata.registration_endpoint === undefined
  return isRefused ? `its authorization server ${url} does not support dynamic client registration` : undefined
}

/** Returns advice to the operator on how to register a client manually, as a clause. */
export const manualRegistrationAdvice = ({ redirectUri }: Pick<GatewayAsOAuthClient, 'redirectUri'>): string =>
  `register a client there manually, with the redirect URI ${redirectUri}, and set "oauth.clientId"`

/** Creates the error for a server that requires credentials but publishes no authorization metadata. */
export const credentialsRequiredError = (): UpstreamError =>
  new UpstreamError('unauthorized', 'the upstream requires credentials (HTTP 401): check the configured headers')

/**
 * Registers the gateway as a client of an authorization server (RFC 7591).
 * @param scopes the scopes to name in the registration
 * @param binding a hash of the server's owner and addresses: the registration is valid only for these
 * @throws UpstreamError that says what to configure
 */
export async function registerGateway (
  { server: { url, metadata }, isGuess }: AuthorizationDiscovery,
  scopes: readonly string[],
  self: GatewayAsOAuthClient,
  { binding, oauth, fetchFn }: { binding: string, oauth: UpstreamOAuth, fetchFn: FetchLike }
): Promise<StoredRegistration> {
  const obstacle = registrationObstacle({ server: { url, metadata } }, oauth)
  if (obstacle !== undefined) throw new UpstreamError('unauthorized', `${obstacle}: ${manualRegistrationAdvice(self)}`)
  const methods = metadata?.token_endpoint_auth_methods_supported
  const method = ['client_secret_basic', 'client_secret_post', 'none'].find((each) => methods?.includes(each)) ??
    'client_secret_basic'
  const { registerClient } = await loadSdk()
  let named = scopes
  const register = async (): ReturnType<typeof registerClient> => await registerClient(url, {
    metadata,
    clientMetadata: { ...clientMetadata(self), token_endpoint_auth_method: method },
    scope: named.length === 0 ? undefined : named.join(' '),
    fetchFn
  })
  try {
    // Some servers refuse a registration because of its scopes, which are optional (RFC 7591, section 2).
    const made = await register().catch(async (error: unknown) => {
      if (named.length === 0 || oauthErrorCodeOf(error) === undefined) throw error
      named = []
      return await register()
    })
    const {
      client_id: id, client_secret: secret, token_endpoint_auth_method: given, client_secret_expires_at: expires = 0
    } = made
    return {
      binding,
      issuer: url,
      redirectUri: self.redirectUri,
      client: { id, ...(secret === undefined ? {} : { secret }), ...(given === undefined ? {} : { method: given }) },
      ...(named.length === 0 ? {} : { scopes: named }),
      ...(secret === undefined || expires === 0 ? {} : { expiresAt: expires * 1_000 })
    }
  } catch (error) {
    if (!isGuess || error instanceof UpstreamError) {
      throw authorizationFailure(
        error, `the registration at its authorization server (${manualRegistrationAdvice(self)})`
      )
    }
    throw credentialsRequiredError()
  }
}
