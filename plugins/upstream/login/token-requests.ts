import { constants, createPrivateKey, type KeyObject, randomUUID, sign } from 'node:crypto'
import type { OAuthTokens } from '@modelcontextprotocol/sdk/shared/auth.js'
import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js'
import { UpstreamError } from '../../../protocol/errors.ts'
import type { UpstreamOAuth } from '../../../schemas/upstream-oauth.ts'
import { clientBasicAuthorization } from '../openapi/http-syntax.ts'
import type { AuthorizationDiscovery } from './discovery.ts'
import { loadSdk } from './sdk.ts'
import {
  type AuthorizationServer, type UpstreamOAuthClient, type LoginWithoutTokens, createLogin, type ServerLoginRecord
} from './stored.ts'

/** The dependencies of requests to a token endpoint. */
interface TokenDeps { readonly oauth: UpstreamOAuth, readonly fetchFn: FetchLike }

/** Converts a client to the form that the SDK's functions take. */
const clientInformation = ({ id, secret }: UpstreamOAuthClient) => ({
  client_id: id, ...(secret === undefined ? {} : { client_secret: secret })
})

/** Creates the function with which the SDK adds the client's authentication to a request. */
const authentication = (client: UpstreamOAuthClient, server: AuthorizationServer, oauth: UpstreamOAuth) =>
  (headers: Headers, params: URLSearchParams): void => { authenticateAsClient(headers, params, client, server, oauth) }

/** Exchanges an authorization code (RFC 6749, section 4.1.3; RFC 7636). @throws the SDK's errors, UpstreamError */
export async function exchangeCode (
  frame: LoginWithoutTokens,
  { code, codeVerifier, redirectUri }: { code: string, codeVerifier: string, redirectUri: string },
  { oauth, fetchFn }: TokenDeps
): Promise<ServerLoginRecord> {
  const { server, client, resource } = frame
  const { exchangeAuthorization } = await loadSdk()
  const tokens = await exchangeAuthorization(server.url, {
    metadata: server.metadata,
    clientInformation: clientInformation(client),
    authorizationCode: code,
    codeVerifier,
    redirectUri,
    resource,
    addClientAuthentication: authentication(client, server, oauth),
    fetchFn
  })
  return createLogin(frame, tokens)
}

/** Refreshes a login (RFC 6749, section 6). @throws the SDK's errors, UpstreamError */
export async function refreshLogin (
  login: ServerLoginRecord, { oauth, fetchFn }: TokenDeps
): Promise<ServerLoginRecord> {
  const { server, client, resource, refreshToken = '' } = login
  const { refreshAuthorization } = await loadSdk()
  const tokens = await refreshAuthorization(server.url, {
    metadata: server.metadata,
    clientInformation: clientInformation(client),
    refreshToken,
    resource,
    addClientAuthentication: authentication(client, server, oauth),
    fetchFn
  })
  const { binding, scopes } = login
  return createLogin(
    { binding, scopes, server, client, ...(resource === undefined ? {} : { resource }) }, tokens, refreshToken
  )
}

/**
 * Logs in as the gateway itself, without a user, by the client credentials grant (RFC 6749, section 4.4; MCP "OAuth
 * Client Credentials").
 * @throws the SDK's errors, UpstreamError
 */
export async function requestClientCredentials (
  { server, resource }: AuthorizationDiscovery,
  frame: Pick<LoginWithoutTokens, 'binding' | 'client'>,
  scopes: readonly string[],
  { oauth, fetchFn }: TokenDeps
): Promise<ServerLoginRecord> {
  const { fetchToken } = await loadSdk()
  const { client } = frame
  const tokens: OAuthTokens = await fetchToken({
    redirectUrl: undefined,
    clientMetadata: { redirect_uris: [] },
    clientInformation: () => clientInformation(client),
    prepareTokenRequest: () => {
      const params = new URLSearchParams({ grant_type: 'client_credentials' })
      if (scopes.length > 0) params.set('scope', scopes.join(' '))
      return params
    },
    addClientAuthentication: authentication(client, server, oauth),
    tokens: () => undefined,
    saveTokens: () => {},
    redirectToAuthorization: () => {},
    saveCodeVerifier: () => {},
    codeVerifier: () => ''
  }, server.url, { metadata: server.metadata, resource, fetchFn })
  const { refresh_token: _, ...rest } = tokens
  return createLogin({ ...frame, scopes, server, ...(resource === undefined ? {} : { resource }) }, rest)
}

/**
 * Revokes a login's refresh token, or its access token if it has none (RFC 7009), if the authorization server supports
 * this. Error responses are ignored.
 * @throws UpstreamError if there is no response
 */
export async function revokeTokens (
  { server, client, accessToken, refreshToken }: ServerLoginRecord,
  { oauth, fetchFn }: TokenDeps
): Promise<void> {
  const { metadata } = server
  const endpoint = metadata && 'revocation_endpoint' in metadata ? metadata.revocation_endpoint : undefined
  if (typeof endpoint !== 'string') return
  const headers = new Headers({ 'content-type': 'application/x-www-form-urlencoded' })
  const body = new URLSearchParams({
    token: refreshToken ?? accessToken,
    token_type_hint: refreshToken === undefined ? 'access_token' : 'refresh_token'
  })
  authenticateAsClient(headers, body, client, server, oauth)
  await fetchFn(endpoint, { method: 'POST', headers, body })
}

/** The lifetime of a client assertion, in seconds. */
const assertionLife = 300

/**
 * Adds the client's authentication to a request to the token or revocation endpoint (RFC 6749, section 2.3; OpenID
 * Connect Core, section 9), with the method that `authMethodOf` returns.
 * @throws UpstreamError for an invalid private key
 */
export function authenticateAsClient (
  headers: Headers,
  params: URLSearchParams,
  client: UpstreamOAuthClient,
  { url, metadata }: AuthorizationServer,
  oauth: UpstreamOAuth = {}
): void {
  switch (authMethodOf(client, metadata?.token_endpoint_auth_methods_supported, oauth)) {
    case 'private_key_jwt':
      params.set('client_assertion_type', 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer')
      params.set('client_assertion', assertion(client.id, metadata?.issuer ?? url, oauth))
      return
    case 'client_secret_basic':
      headers.set('authorization', clientBasicAuthorization(client.id, client.secret ?? ''))
      return
    case 'client_secret_post':
      params.set('client_secret', client.secret ?? '')
      params.set('client_id', client.id)
      return
    default:
      params.set('client_id', client.id)
  }
}

/**
 * Returns the client's authentication method: the one in the config; `private_key_jwt` with a configured private key;
 * `none` without a secret; otherwise the registered one if the authorization server supports it, or else one that the
 * server supports.
 * @param supported the methods that the server states; undefined if it states none, which means client_secret_basic
 */
export function authMethodOf (
  client: UpstreamOAuthClient, supported: readonly string[] | undefined, oauth: UpstreamOAuth = {}
): string {
  if (oauth.tokenEndpointAuthMethod !== undefined) return oauth.tokenEndpointAuthMethod
  if (oauth.privateKey !== undefined && client.id === oauth.clientId) return 'private_key_jwt'
  if (client.secret === undefined) return 'none'
  const takes = (method: string): boolean => supported?.includes(method) ?? method === 'client_secret_basic'
  const registered = client.method
  if (registered !== undefined && (supported === undefined || takes(registered))) return registered
  if (takes('client_secret_basic')) return 'client_secret_basic'
  if (takes('client_secret_post')) return 'client_secret_post'
  return takes('none') ? 'none' : 'client_secret_post'
}

const base64url = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/**
 * Creates a client assertion (RFC 7523, section 3).
 * @param audience the issuer identifier of the authorization server
 */
function assertion (clientId: string, audience: string, oauth: UpstreamOAuth): string {
  const { privateKey = '', signingAlgorithm: alg = 'ES256', keyId } = oauth
  const now = Math.floor(Date.now() / 1_000)
  const header = base64url({ alg, typ: 'JWT', ...(keyId === undefined ? {} : { kid: keyId }) })
  const claims =
    base64url({ iss: clientId, sub: clientId, aud: audience, iat: now, exp: now + assertionLife, jti: randomUUID() })
  try {
    const key = keyFrom(privateKey)
    const hash = alg === 'EdDSA' ? null : `sha${alg.slice(2)}`
    const signature = sign(hash, Buffer.from(`${header}.${claims}`), {
      key,
      dsaEncoding: 'ieee-p1363',
      // RSASSA-PSS with a salt as long as the hash (RFC 7518, section 3.5).
      ...(alg.startsWith('PS') && {
        padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST
      })
    })
    return `${header}.${claims}.${signature.toString('base64url')}`
  } catch {
    throw new UpstreamError('unauthorized', `"oauth.privateKey" cannot sign with ${alg}: check the key and ` +
      '"oauth.signingAlgorithm"')
  }
}

/** Parses a private key. @param text a PKCS #8 key as PEM, or a JWK as JSON */
const keyFrom = (text: string): KeyObject => text.trimStart().startsWith('{')
  ? createPrivateKey({ key: JSON.parse(text) as Record<string, string>, format: 'jwk' })
  : createPrivateKey(text)
