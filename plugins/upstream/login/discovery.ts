import type {
  AuthorizationServerMetadata, OAuthProtectedResourceMetadata
} from '@modelcontextprotocol/sdk/shared/auth.js'
import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js'
import { UpstreamError } from '../../../protocol/errors.ts'
import type { UpstreamOAuth } from '../../../schemas/upstream-oauth.ts'
import { visibleText } from '../../base/pages/index.ts'
import { authorizationFailure } from './problems.ts'
import { loadSdk } from './sdk.ts'
import type { AuthorizationServer } from './stored.ts'

/** The result of discovering the authorization of a server. */
export interface AuthorizationDiscovery {
  readonly server: AuthorizationServer
  /** The issuer that responses must name (RFC 9207): the one whose metadata was fetched; undefined if none is known. */
  readonly issuer: string | undefined
  /** The resource to request a token for (RFC 8707), exactly as the server states it. */
  readonly resource: string | undefined
  readonly resourceScopes: readonly string[] | undefined
  /** Whether the server publishes no metadata, so that only the fixed paths of MCP 2025-03-26 remain. */
  readonly isGuess: boolean
}

const fail = (sentence: string): never => { throw new UpstreamError('unauthorized', sentence) }

/** Compares identifiers as strings, ignoring a trailing slash, which many servers write in one place only. */
const isSameIdentifier = (one: string, other: string): boolean => one.replace(/\/$/, '') === other.replace(/\/$/, '')

interface DiscoveryInput {
  readonly serverUrl: URL
  /** The URL of the metadata that the challenge names. */
  readonly metadataUrl: URL | undefined
  readonly oauth: UpstreamOAuth
  /** Whether an admin stored the server with all of its addresses. */
  readonly isAdminStored: boolean
}

type MakeFetch = (onStatus: (status: number) => void) => FetchLike

/**
 * Finds the authorization server of an MCP server (MCP 2025-11-25, Authorization, "Authorization Server Discovery") by
 * its protected resource metadata (RFC 9728), and then that server's metadata (RFC 8414, OpenID Connect Discovery). A
 * server without resource metadata is its own authorization server (MCP 2025-03-26), with metadata or fixed paths.
 * @throws UpstreamError with a message for the operator
 */
export async function discoverAuthorization (
  input: DiscoveryInput, makeFetch: MakeFetch
): Promise<AuthorizationDiscovery> {
  const { serverUrl, metadataUrl, oauth, isAdminStored } = input
  const fixed = fixedServer(oauth)
  if (fixed) {
    if (!isAdminStored) checkOrigins(fixed)
    return { server: fixed, issuer: oauth.issuer, resource: oauth.resource, resourceScopes: undefined, isGuess: false }
  }
  const described = await readResource(serverUrl, metadataUrl, makeFetch)
  const url = issuerOf(described, oauth) ?? new URL('/', serverUrl).href
  const metadata = await readServer(url, makeFetch)
  if (metadata) checkServer(metadata, url, described !== undefined, oauth)
  if (!isAdminStored) checkOrigins({ url, metadata })
  return {
    server: { url, metadata },
    issuer: metadata && await fetchedIssuer(url, metadata, makeFetch),
    resource: oauth.resource ?? described?.resource,
    resourceScopes: described?.scopes_supported,
    isGuess: described === undefined && metadata === undefined
  }
}

/**
 * The issuer that metadata was fetched from. A server of MCP 2025-03-26 may return the metadata of another issuer,
 * which is accepted if that issuer publishes the same endpoints. Otherwise a code for one server could be sent to the
 * token endpoint of another (mix-up, RFC 9700, section 4.4).
 */
async function fetchedIssuer (
  url: string, metadata: AuthorizationServerMetadata, makeFetch: MakeFetch
): Promise<string> {
  const { issuer } = metadata
  if (isSameIdentifier(issuer, url)) return issuer
  const own = URL.canParse(issuer) ? await readServer(issuer, makeFetch).catch(() => undefined) : undefined
  const isConfirmed = own?.issuer === issuer && own.authorization_endpoint === metadata.authorization_endpoint &&
    own.token_endpoint === metadata.token_endpoint
  return isConfirmed ? issuer : url
}

/**
 * Requires that all addresses of a server that no admin stored have one origin: its user may have made them up, and the
 * code of a login at one authorization server would be sent to another (RFC 9700, section 4.4).
 */
function checkOrigins ({ url, metadata }: AuthorizationServer): void {
  const addresses = metadata ? [url, metadata.issuer, metadata.authorization_endpoint, metadata.token_endpoint] : [url]
  const origins = [...new Set(addresses.map((each) => URL.canParse(each) ? new URL(each).origin : each))]
  if (origins.length === 1) return
  fail(
    'this server was not stored by an admin, so the issuer, the authorization endpoint and the token endpoint must ' +
    `have one origin, but they have ${visibleText(origins.join(', '), 300)}: ask an admin to store the server`
  )
}

/** The authorization server, if the config describes it completely. */
function fixedServer (oauth: UpstreamOAuth): AuthorizationServer | undefined {
  const { authorizationEndpoint, tokenEndpoint, grantType, issuer } = oauth
  if (tokenEndpoint === undefined || (authorizationEndpoint === undefined && grantType !== 'client_credentials')) {
    return undefined
  }
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

/** Reads the protected resource metadata (RFC 9728, sections 3 and 5). @returns undefined if the server has none */
async function readResource (
  serverUrl: URL,
  metadataUrl: URL | undefined,
  makeFetch: MakeFetch
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
    if (metadataUrl === undefined) return undefined
    // The address in the challenge does not exist, but that of RFC 9728 may.
    if (!isThere) return await readResource(serverUrl, undefined, makeFetch)
    return fail(`the protected resource metadata at ${metadataUrl.origin}${metadataUrl.pathname} cannot be read`)
  }
  const { resource } = described
  const isSameResource = URL.canParse(resource) &&
    checkResourceAllowed({ requestedResource: resourceUrlFromServerUrl(serverUrl), configuredResource: resource })
  return isSameResource
    ? described
    : fail('the server\'s metadata is for another resource ' +
      `(${visibleText(resource, 200)}) than its address: check "url"`)
}

/** The authorization server to use, among those that the resource names. */
function issuerOf (
  described: OAuthProtectedResourceMetadata | undefined, { issuer }: UpstreamOAuth
): string | undefined {
  const named = described?.authorization_servers?.map(String) ?? []
  if (issuer === undefined) return named[0]
  if (described === undefined || named.length === 0 || named.some((each) =>
    isSameIdentifier(each, issuer))) return issuer
  return fail(
    `the server names other authorization servers (${visibleText(named.join(', '), 300)}) than "oauth.issuer"`
  )
}

/** Reads the metadata (RFC 8414, section 3; OpenID Connect Discovery, section 4). @returns undefined if it has none */
async function readServer (url: string, makeFetch: MakeFetch): Promise<AuthorizationServerMetadata | undefined> {
  const { discoverAuthorizationServerMetadata } = await loadSdk()
  try {
    return await discoverAuthorizationServerMetadata(url, { fetchFn: makeFetch(() => {}) })
  } catch (error) {
    throw authorizationFailure(error, `reading the metadata of the authorization server ${visibleText(url, 200)}`)
  }
}

/**
 * Checks the metadata of an authorization server.
 * @param isNamed whether the metadata of the resource names it
 * @throws UpstreamError for metadata of another issuer (RFC 8414, section 3.3), without PKCE, or with an endpoint that
 *   browsers must not open
 */
function checkServer (
  metadata: AuthorizationServerMetadata, url: string, isNamed: boolean, { grantType }: UpstreamOAuth
): void {
  const { issuer, code_challenge_methods_supported: methods, authorization_endpoint: endpoint } = metadata
  // A server of MCP 2025-03-26 may return the metadata of another issuer.
  if (isNamed && !isSameIdentifier(issuer, url)) {
    fail(`the authorization server ${visibleText(url, 200)} has the issuer ${visibleText(issuer, 200)}: its metadata ` +
      'is not trusted')
  }
  if (grantType === 'client_credentials') return
  const hasPkce = methods?.includes('S256') ?? !isNamed
  if (!hasPkce) {
    fail(
      `the authorization server ${visibleText(url, 200)} does not declare support for PKCE with S256, which MCP ` +
      'requires: if it supports it, set "oauth.authorizationEndpoint" and "oauth.tokenEndpoint"'
    )
  }
  if (!/^https?:$/.test(new URL(endpoint).protocol)) {
    fail('the authorization endpoint of the authorization server is not an http or https address')
  }
}
