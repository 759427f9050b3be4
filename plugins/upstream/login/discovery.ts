import type { AuthorizationServerMetadata, OAuthProtectedResourceMetadata } from '@modelcontextprotocol/sdk/shared/auth.js'
import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js'
import { UpstreamError } from '../../../protocol/errors.ts'
import type { UpstreamOAuth } from '../../../schemas/upstream-oauth.ts'
import { shown } from '../../pages/shown.ts'
import { failureOf } from './problems.ts'
import { loadSdk } from './sdk.ts'
import type { AuthorizationServer } from './stored.ts'

/** What was found out about the authorization of a server. */
export interface Discovered {
  readonly server: AuthorizationServer
  /** The resource to ask a token for (RFC 8707), as the server writes it. */
  readonly resource: string | undefined
  /** Scopes that the resource names. */
  readonly resourceScopes: readonly string[] | undefined
  /** The server publishes nothing about its authorization: only the paths of MCP 2025-03-26 are left. */
  readonly isGuess: boolean
}

const refuse = (sentence: string): never => { throw new UpstreamError('unauthorized', sentence) }

/** Identifiers are compared as they are, but for a slash at the end, which many write in one place only. */
const isSame = (one: string, other: string): boolean => one.replace(/\/$/, '') === other.replace(/\/$/, '')

/**
 * Finds the authorization server of an MCP server (MCP 2025-11-25, Authorization, "Authorization Server Discovery"): by its protected
 * resource metadata (RFC 9728), then the authorization server's (RFC 8414, OpenID Connect Discovery). A server without the first is its
 * own authorization server (MCP 2025-03-26), by metadata or by fixed paths.
 * @param metadataUrl the address that the challenge names
 * @throws UpstreamError with a sentence for the operator
 */
export async function discover (
  serverUrl: URL,
  metadataUrl: URL | undefined,
  oauth: UpstreamOAuth,
  makeFetch: (onStatus: (status: number) => void) => FetchLike
): Promise<Discovered> {
  const fixed = fixedServer(serverUrl, oauth)
  if (fixed) return { server: fixed, resource: oauth.resource, resourceScopes: undefined, isGuess: false }
  const described = await readResource(serverUrl, metadataUrl, makeFetch)
  const url = issuerOf(described, oauth) ?? new URL('/', serverUrl).href
  const metadata = await readServer(url, makeFetch)
  if (metadata) checkServer(metadata, url, described !== undefined, oauth)
  return {
    server: { url, metadata },
    resource: oauth.resource ?? described?.resource,
    resourceScopes: described?.scopes_supported,
    isGuess: described === undefined && metadata === undefined
  }
}

/** The authorization server of the config, which needs no discovery. */
function fixedServer (serverUrl: URL, oauth: UpstreamOAuth): AuthorizationServer | undefined {
  const { authorizationEndpoint, tokenEndpoint, grantType, issuer } = oauth
  if (tokenEndpoint === undefined || (authorizationEndpoint === undefined && grantType !== 'client_credentials')) return undefined
  const url = issuer ?? new URL('/', tokenEndpoint).href
  return {
    url,
    metadata: {
      issuer: url,
      authorization_endpoint: authorizationEndpoint ?? tokenEndpoint,
      token_endpoint: tokenEndpoint,
      response_types_supported: ['code']
    }
  }
}

/** RFC 9728 §3 and §5. @returns undefined: the server publishes none */
async function readResource (
  serverUrl: URL,
  metadataUrl: URL | undefined,
  makeFetch: (onStatus: (status: number) => void) => FetchLike
): Promise<OAuthProtectedResourceMetadata | undefined> {
  const { discoverOAuthProtectedResourceMetadata, checkResourceAllowed, resourceUrlFromServerUrl } = await loadSdk()
  let isThere = false
  const fetchFn = makeFetch((status) => { isThere ||= status === 200 })
  let described: OAuthProtectedResourceMetadata
  try {
    described = await discoverOAuthProtectedResourceMetadata(serverUrl, { resourceMetadataUrl: metadataUrl }, fetchFn)
  } catch (error) {
    if (error instanceof UpstreamError) throw error
    // A web application may answer every path with its start page.
    if (!isThere || metadataUrl === undefined) return undefined
    return refuse(`the protected resource metadata at ${metadataUrl.origin}${metadataUrl.pathname} cannot be read`)
  }
  const { resource } = described
  const isOurs = URL.canParse(resource) &&
    checkResourceAllowed({ requestedResource: resourceUrlFromServerUrl(serverUrl), configuredResource: resource })
  return isOurs
    ? described
    : refuse(`the server's metadata is of another resource (${shown(resource, 200)}) than its address: check "url"`)
}

/** The authorization server to use, of those that the resource names. */
function issuerOf (described: OAuthProtectedResourceMetadata | undefined, { issuer }: UpstreamOAuth): string | undefined {
  const named = described?.authorization_servers?.map(String) ?? []
  if (issuer === undefined) return named[0]
  if (described === undefined || named.length === 0 || named.some((each) => isSame(each, issuer))) return issuer
  return refuse(`the server names other authorization servers (${shown(named.join(', '), 300)}) than "oauth.issuer"`)
}

/** RFC 8414 §3, OpenID Connect Discovery §4. @returns undefined: it publishes none */
async function readServer (
  url: string,
  makeFetch: (onStatus: (status: number) => void) => FetchLike
): Promise<AuthorizationServerMetadata | undefined> {
  const { discoverAuthorizationServerMetadata } = await loadSdk()
  try {
    return await discoverAuthorizationServerMetadata(url, { fetchFn: makeFetch(() => {}) })
  } catch (error) {
    throw failureOf(error, `reading the metadata of the authorization server ${shown(url, 200)}`)
  }
}

/**
 * @param isNamed a resource names this authorization server
 * @throws UpstreamError for metadata of another issuer (RFC 8414 §3.3), without PKCE, or with an endpoint that browsers must not open
 */
function checkServer (metadata: AuthorizationServerMetadata, url: string, isNamed: boolean, { grantType }: UpstreamOAuth): void {
  const { issuer, code_challenge_methods_supported: methods, authorization_endpoint: endpoint } = metadata
  // A server that is its own authorization server in the manner of 2025-03-26 may pass on the metadata of another one.
  if (isNamed && !isSame(issuer, url)) {
    refuse(`the authorization server ${shown(url, 200)} says it is ${shown(issuer, 200)}: its metadata is not trusted`)
  }
  if (grantType === 'client_credentials') return
  const hasPkce = methods?.includes('S256') ?? !isNamed
  if (!hasPkce) {
    refuse(
      `the authorization server ${shown(url, 200)} does not announce PKCE with S256, which MCP requires: ` +
      'if it has it, set "oauth.authorizationEndpoint" and "oauth.tokenEndpoint"'
    )
  }
  if (!/^https?:$/.test(new URL(endpoint).protocol)) refuse('the authorization server names an authorization endpoint that is no web address')
}
