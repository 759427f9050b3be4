import type { OAuthClient } from '../../../db/ports/clients.ts'
import { reservedNameProblem } from '../../../schemas/names.ts'
import { OAuthError } from '../../base/errors/index.ts'
import { mcpScope } from '../../settings/index.ts'
import { clientAuthMethods, manageScope, type OAuthSettings } from './settings.ts'
import { identityLimits } from '../limits.ts'

/** The members of a client that come from its registration, or from the admin who created it. */
export type ClientMetadata =
  Omit<OAuthClient, 'clientId' | 'secretHash' | 'registrationTokenHash' | 'origin' | 'createdAt' | 'lastUsedAt'>

const invalidMetadata = (description: string): OAuthError => new OAuthError('invalid_client_metadata', description)

function readTextMember (metadata: Readonly<Record<string, unknown>>, name: string): string | undefined {
  const value = metadata[name]
  if (value === undefined) return undefined
  if (typeof value !== 'string') throw invalidMetadata(`"${name}" must be a string`)
  if (value.length > identityLimits.oauth.uri) {
    throw invalidMetadata(`"${name}" is longer than ${identityLimits.oauth.uri} characters`)
  }
  return value
}

/** Reads a member that is the http(s) URL of a page for users. */
function readPageUrl (metadata: Readonly<Record<string, unknown>>, name: string): string | undefined {
  const value = readTextMember(metadata, name)
  if (value === undefined) return undefined
  if (!URL.canParse(value) || !/^https?:$/.test(new URL(value).protocol)) {
    throw invalidMetadata(`"${name}" must be an http or https address`)
  }
  return value
}

function readTextList (metadata: Readonly<Record<string, unknown>>, name: string): readonly string[] | undefined {
  const value = metadata[name]
  if (value === undefined) return undefined
  const isList =
    Array.isArray(value) && value.length <= 20 && value.every((each) => typeof each === 'string' && each.length <= 256)
  if (!isList) throw invalidMetadata(`"${name}" must be a list of short strings`)
  return value as string[]
}

/**
 * Returns the grant types of a self-registered client: those that it requests and the settings allow, or all that the
 * settings allow if it requests none. Many clients request all grant types that they know, so grant types that are not
 * allowed are left out without an error (RFC 7591, section 3.2.1).
 * @throws OAuthError if `authorization_code` is not among the grant types
 */
function grantTypesOf (metadata: Readonly<Record<string, unknown>>, settings: OAuthSettings): readonly string[] {
  const allowed: readonly string[] = settings.dynamicRegistration.allowedGrantTypes
  const asked = readTextList(metadata, 'grant_types') ?? allowed
  const granted = allowed.filter((type) => asked.includes(type))
  if (granted.includes('authorization_code')) return granted
  throw invalidMetadata(`"grant_types" must contain "authorization_code"; allowed are ${allowed.join(' and ')}`)
}

/**
 * Returns the scopes of a self-registered client: those that it requests and the settings allow, or all allowed scopes
 * if it requests none; never `manage`. `mcp` is added if the settings allow it, since MCP routes are unusable without
 * it: some clients register with the scopes of OpenID Connect alone, and request `mcp` only after a challenge.
 * @throws OAuthError if the settings allow none of the requested scopes, or no scope remains
 */
export function scopeOf (metadata: Readonly<Record<string, unknown>>, { allowedScopes }: OAuthSettings): string {
  const possible = allowedScopes.filter((scope) => scope !== manageScope)
  const asked = (readTextMember(metadata, 'scope') ?? '').split(' ').filter((scope) => scope !== '')
  const isKnown = asked.length === 0 || asked.some((scope) => allowedScopes.includes(scope))
  const scopes = possible.filter((scope) => asked.length === 0 || asked.includes(scope) || scope === mcpScope)
  if (isKnown && scopes.length > 0) return scopes.join(' ')
  throw invalidMetadata(possible.length === 0
    ? 'No scope is available to clients that register themselves; ask an admin for a client'
    : `"scope" contains no scope that is available; omit it, or use some of: ${possible.join(' ')}`)
}

/**
 * Reads the metadata of a self-registered client (RFC 7591, section 2). Unknown members are ignored, and so is
 * `application_type`: every client may have redirect URIs of web and of native applications. The scope `manage` is
 * never included.
 * @throws OAuthError `invalid_client_metadata`, `invalid_redirect_uri`
 */
export function readClientMetadata (
  metadata: Readonly<Record<string, unknown>>, settings: OAuthSettings
): ClientMetadata {
  const redirectUris = readRedirectUris(metadata.redirect_uris)
  const grantTypes = grantTypesOf(metadata, settings)
  const responseTypes = readTextList(metadata, 'response_types') ?? ['code']
  if (responseTypes.length !== 1 || responseTypes[0] !== 'code') {
    throw invalidMetadata('"response_types" can only be ["code"]')
  }
  const tokenEndpointAuthMethod = readTextMember(metadata, 'token_endpoint_auth_method') ?? 'client_secret_basic'
  if (!clientAuthMethods(settings).includes(tokenEndpointAuthMethod)) {
    throw invalidMetadata(`"token_endpoint_auth_method" must be one of ${clientAuthMethods(settings).join(', ')}`)
  }
  const name = readTextMember(metadata, 'client_name')
  const problem = name === undefined ? undefined : reservedNameProblem(name)
  if (problem !== undefined) throw invalidMetadata(`"client_name" ${problem}`)
  const known: Partial<ClientMetadata> = {
    clientUri: readPageUrl(metadata, 'client_uri'),
    logoUri: readPageUrl(metadata, 'logo_uri'),
    policyUri: readPageUrl(metadata, 'policy_uri'),
    tosUri: readPageUrl(metadata, 'tos_uri'),
    contacts: readTextList(metadata, 'contacts'),
    softwareId: readTextMember(metadata, 'software_id'),
    softwareVersion: readTextMember(metadata, 'software_version')
  }
  const stated: ClientMetadata = {
    name: name === undefined || name.trim() === ''
      ? 'An application without a name'
      : name.slice(0, identityLimits.oauth.name),
    redirectUris,
    grantTypes,
    responseTypes,
    tokenEndpointAuthMethod,
    scope: scopeOf(metadata, settings),
    ...Object.fromEntries(Object.entries(known).filter(([, value]) => value !== undefined))
  }
  if (Buffer.byteLength(JSON.stringify(stated)) > identityLimits.oauth.metadata) {
    throw invalidMetadata(`The metadata is larger than ${identityLimits.oauth.metadata} bytes: use fewer or ` +
      'shorter redirect URIs and addresses')
  }
  return stated
}

/** Returns a client in the form of RFC 7591, without its secret. Times are in seconds. */
export function toClientInformation (client: OAuthClient): Record<string, unknown> {
  const { clientId, name, redirectUris, grantTypes, responseTypes, tokenEndpointAuthMethod, scope, createdAt } = client
  const { clientUri, logoUri, policyUri, tosUri, contacts, softwareId, softwareVersion } = client
  return {
    client_id: clientId,
    client_id_issued_at: Math.floor(createdAt / 1_000),
    client_name: name,
    redirect_uris: redirectUris,
    grant_types: grantTypes,
    response_types: responseTypes ?? ['code'],
    token_endpoint_auth_method: tokenEndpointAuthMethod,
    scope,
    client_uri: clientUri,
    logo_uri: logoUri,
    policy_uri: policyUri,
    tos_uri: tosUri,
    contacts,
    software_id: softwareId,
    software_version: softwareVersion
  }
}

/**
 * The private-use URI schemes of well-known applications that are allowed in redirect URIs. Other private-use schemes
 * must contain a dot, like reversed domain names (RFC 8252, section 7.1).
 */
const knownSchemes =
  new Set(['cursor:', 'vscode:', 'vscode-insiders:', 'windsurf:', 'claude:', 'zed:', 'warp:', 'raycast:', 'goose:'])

/** The loopback hosts that oidc-provider accepts in redirect URIs (RFC 8252, section 7.3). */
const loopbackHosts = new Set(['localhost', '127.0.0.1', '[::1]'])

/** Returns why a redirect URI cannot be registered, as the end of a sentence; undefined if it can. */
function redirectUriProblem (uri: string): string | undefined {
  if (uri.length > identityLimits.oauth.uri) return `is longer than ${identityLimits.oauth.uri} characters`
  // `URL` silently drops some of these characters.
  if (/[^\x21-\x7e]|["<>\\^`{|}]/.test(uri)) return 'contains characters that are not allowed in a URI'
  if (uri.includes('*')) return 'contains *: redirect URIs are compared exactly, without wildcards'
  if (!URL.canParse(uri)) return 'is not an absolute URI'
  const { protocol, hostname, username, password } = new URL(uri)
  if (uri.includes('#')) return 'has a fragment'
  if (username !== '' || password !== '') return 'contains a user'
  if (protocol === 'https:') {
    return loopbackHosts.has(hostname)
      ? 'is a loopback address, which must use http'
      : undefined
  }
  if (protocol === 'http:') {
    return loopbackHosts.has(hostname)
      ? undefined
      : 'is not encrypted: http is allowed for loopback addresses only'
  }
  return protocol.includes('.') || knownSchemes.has(protocol)
    ? undefined
    : 'has a scheme that is neither https nor a reverse domain name'
}

/**
 * Checks that a value is a list of redirect URIs that can be registered, and returns it.
 * @param name the name of the member in error messages
 * @throws OAuthError `invalid_redirect_uri`
 */
export function readRedirectUris (uris: unknown, name = 'redirect_uris'): readonly string[] {
  const isList = Array.isArray(uris) && uris.length > 0 && uris.every((uri): uri is string => typeof uri === 'string')
  if (!isList) throw new OAuthError('invalid_redirect_uri', `"${name}" must be a list of at least one URI`)
  if (uris.length > identityLimits.oauth.redirectUris) {
    throw new OAuthError('invalid_redirect_uri', `"${name}" may contain at most ` +
      `${identityLimits.oauth.redirectUris} URIs`)
  }
  for (const uri of uris) {
    const problem = redirectUriProblem(uri)
    if (problem !== undefined) {
      throw new OAuthError('invalid_redirect_uri', `${JSON.stringify(uri.slice(0, 200))} ${problem}`)
    }
  }
  return uris
}
