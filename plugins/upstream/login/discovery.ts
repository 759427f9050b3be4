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

/** What was found out about the authorization of an MCP server. */
export interface AuthorizationDiscovery {
  readonly server: AuthorizationServer
  /** The issuer that responses must name (RFC 9207): the one whose metadata was fetched; undefined if none is known. */
  readonly issuer: string | undefined
  /** The resource for which tokens are requested (RFC 8707), exactly as the config or the server states it. */
  readonly resource: string | undefined
  /** `scopes_supported` of the protected resource metadata. */
  readonly resourceScopes: readonly string[] | undefined
  /** Whether no metadata was found, so that only the default endpoint paths of MCP 2025-03-26 remain. */
  readonly isGuess: boolean
}

const fail = (sentence: string): never => { throw new UpstreamError('unauthorized', sentence) }

/** Compares two identifiers as strings, ignoring a trailing slash, which many servers write in one place only. */
const isSameIdentifier = (one: string, other: string): boolean => one.replace(/\/$/, '') === other.replace(/\/$/, '')

interface DiscoveryInput {
  readonly serverUrl: URL
  /** The URL of the protected resource metadata that the server's challenge names; undefined if it names none. */
  readonly metadataUrl: URL | undefined
  readonly oauth: UpstreamOAuth
  /** Whether an admin stored the server and all addresses in its config. */
  readonly isAdminStored: boolean
}

type MakeFetch = (onStatus: (status: number) => void) => FetchLike

/**
 * Finds the authorization server of an MCP server (MCP 2025-11-25, Authorization, "Authorization Server Discovery") by
 * the protected resource metadata (RFC 9728), and then reads the metadata of the authorization server (RFC 8414, OpenID
 * Connect Discovery). If the MCP server has no resource metadata, its own origin is the authorization server (MCP
 * 2025-03-26). If the config states all endpoints, nothing is fetched.
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
 * Returns the issuer to expect in responses, given the metadata that was fetched at `url`. A server of MCP 2025-03-26
 * may return the metadata of another issuer. That issuer is returned if it publishes the same endpoints itself,
 * otherwise `url`: a code of one server must not be sent to the token endpoint of another (mix-up, RFC 9700, section
 * 4.4).
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
 * Requires that the addresses of an authorization server have one origin. Called for MCP servers that no admin stored:
 * their user may have chosen the addresses so that a code of one authorization server is sent to another (RFC 9700,
 * section 4.4).
 * @throws UpstreamError
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

/** Returns the authorization server that the config describes; undefined unless the config states all endpoints. */
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
    // There is nothing at the address in the challenge, but there may be at the well-known address of RFC 9728.
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

/**
 * Returns the authorization server to use: the configured issuer, or the first one that the resource names.
 * @returns undefined if there is neither
 * @throws UpstreamError if the resource names authorization servers, but not the configured issuer
 */
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

/**
 * Reads an authorization server's metadata (RFC 8414, section 3; OpenID Connect Discovery, section 4).
 * @returns undefined if it has none
 */
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
 * @param isNamed whether the protected resource metadata names this server
 * @throws UpstreamError if `isNamed` and the issuer is another one (RFC 8414, section 3.3). Unless the grant is client
 *   credentials, also if PKCE is not supported, or the authorization endpoint is no http or https address
 */
function checkServer (
  metadata: AuthorizationServerMetadata, url: string, isNamed: boolean, { grantType }: UpstreamOAuth
): void {
  const { issuer, code_challenge_methods_supported: methods, authorization_endpoint: endpoint } = metadata
  // Without resource metadata (MCP 2025-03-26), a server may return the metadata of another issuer.
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

/**
 * Checks the issuer (`iss`) of an authorization response (RFC 9207, section 2.4). It must equal the issuer whose
 * metadata was fetched; if none was, its origin must be the one to which the browser was sent.
 * @returns the reason why the response is not from the expected authorization server; undefined if it may be
 */
export function foreignIssuer (
  { issuer, namesIssuer, frame: { server } }: {
    readonly issuer?: string, readonly namesIssuer: boolean, readonly frame: Pick<AuthorizationDiscovery, 'server'>
  },
  iss: string | undefined
): string | undefined {
  if (iss === undefined) {
    return namesIssuer
      ? 'The authorization server identifies itself in its responses, but this response has no issuer.'
      : undefined
  }
  const isOrigin = (): boolean =>
    URL.canParse(iss) && new URL(iss).origin === new URL(server.metadata?.authorization_endpoint ?? server.url).origin
  const isSame = issuer === undefined ? isOrigin() : iss === issuer
  return isSame ? undefined : 'It is from a different authorization server.'
}
