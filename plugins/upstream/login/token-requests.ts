import type { OAuthTokens } from '@modelcontextprotocol/sdk/shared/auth.js'
import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js'
import type { UpstreamOAuth } from '../../../schemas/upstream-oauth.ts'
import { authenticate } from './client-authentication.ts'
import type { AuthorizationDiscovery } from './discovery.ts'
import { loadSdk } from './sdk.ts'
import { loginFrom, type AuthorizationServer, type ServerLoginRecord, type LoginClient, type LoginFrame } from './stored.ts'

/** What requests to a token endpoint need beside their grant. */
interface TokenDeps { readonly oauth: UpstreamOAuth, readonly fetchFn: FetchLike }

const clientInformation = ({ id, secret }: LoginClient) => ({ client_id: id, ...(secret === undefined ? {} : { client_secret: secret }) })

const authentication = (client: LoginClient, server: AuthorizationServer, oauth: UpstreamOAuth) =>
  (headers: Headers, params: URLSearchParams): void => { authenticate(headers, params, client, server, oauth) }

/** Exchanges a code (RFC 6749 §4.1.3, RFC 7636). @throws the SDK's errors, UpstreamError */
export async function exchange (
  frame: LoginFrame,
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
  return loginFrom(frame, tokens)
}

/** Refreshes a login (RFC 6749 §6). @throws the SDK's errors, UpstreamError */
export async function refresh (login: ServerLoginRecord, { oauth, fetchFn }: TokenDeps): Promise<ServerLoginRecord> {
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
  return loginFrom({ binding, scopes, server, client, ...(resource === undefined ? {} : { resource }) }, tokens, refreshToken)
}

/** Logs the gateway in as itself (RFC 6749 §4.4; MCP extension "OAuth Client Credentials"). @throws the SDK's errors, UpstreamError */
export async function clientCredentials (
  { server, resource }: AuthorizationDiscovery,
  frame: Pick<LoginFrame, 'binding' | 'client'>,
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
  return loginFrom({ ...frame, scopes, server, ...(resource === undefined ? {} : { resource }) }, rest)
}

/** Tells the authorization server that a login is over (RFC 7009), where it takes that. Failures are of no consequence here. */
export async function revoke (
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
  authenticate(headers, body, client, server, oauth)
  await fetchFn(endpoint, { method: 'POST', headers, body })
}
