import type { AuthorizationServerMetadata, OAuthTokens } from '@modelcontextprotocol/sdk/shared/auth.js'
import { UpstreamError } from '../../../protocol/errors.ts'
import { isObject } from '../../../protocol/json.ts'
import { parseScopes } from './challenge.ts'
import { upstreamLimits } from '../limits.ts'

/** An authorization server. `url`: the URL it was found at; `metadata` is undefined if it has none (MCP 2025-03-26). */
export interface AuthorizationServer {
  readonly url: string, readonly metadata: AuthorizationServerMetadata | undefined
}

/** The gateway as a client of an authorization server. */
export interface UpstreamOAuthClient {
  readonly id: string
  readonly secret?: string
  /** The authentication method that the registration returned. */
  readonly method?: string
}

/** A stored registration (RFC 7591), valid only for its binding, authorization server and redirect URI. */
export interface StoredRegistration {
  readonly binding: string
  readonly issuer: string
  readonly redirectUri: string
  readonly client: UpstreamOAuthClient
  /** In ms since the epoch; undefined if it does not expire. */
  readonly expiresAt?: number
}

/** A stored login, with everything that a refresh needs: later metadata cannot redirect its refresh token. */
export interface ServerLoginRecord {
  /** Identifies the server's target and the holder's account; the login is valid only for these. */
  readonly binding: string
  readonly accessToken: string
  readonly refreshToken?: string
  /** In ms since the epoch. */
  readonly obtainedAt: number
  /** In ms since the epoch; undefined if the authorization server does not state it. */
  readonly expiresAt?: number
  /** All scopes that were requested or granted. */
  readonly scopes: readonly string[]
  readonly server: AuthorizationServer
  readonly client: UpstreamOAuthClient
  readonly resource?: string
}

/** The members that stay the same when a login gets new tokens. */
export type LoginWithoutTokens = Omit<ServerLoginRecord, 'accessToken' | 'refreshToken' | 'obtainedAt' | 'expiresAt'>

/**
 * Creates a login from the response of a token endpoint.
 * @param refreshToken the former refresh token, which stays valid if the response has none (RFC 6749, section 6)
 * @throws UpstreamError for a token that is not a valid header value
 */
export function createLogin (frame: LoginWithoutTokens, tokens: OAuthTokens, refreshToken?: string): ServerLoginRecord {
  const { access_token: accessToken, refresh_token: next = refreshToken, expires_in: lifetime, scope } = tokens
  if (!/^[\x21-\x7e]+$/.test(accessToken) ||
      Math.max(accessToken.length, next?.length ?? 0) > upstreamLimits.login.token) {
    throw new UpstreamError(
      'unauthorized', 'its authorization server issued a token that is not allowed in a header', { isPublic: true }
    )
  }
  const now = Date.now()
  return {
    ...frame,
    scopes: [...new Set([...frame.scopes, ...parseScopes(scope)])],
    accessToken,
    ...(next === undefined ? {} : { refreshToken: next }),
    obtainedAt: now,
    ...(lifetime === undefined ? {} : { expiresAt: now + lifetime * 1_000 })
  }
}

/** The revocation endpoint, if its origin is that of the token endpoint: no other origin gets tokens. */
function ownRevocation (metadata: AuthorizationServerMetadata): { revocation_endpoint?: string } {
  const endpoint = 'revocation_endpoint' in metadata ? metadata.revocation_endpoint : undefined
  if (typeof endpoint !== 'string' || !URL.canParse(endpoint)) return {}
  return new URL(endpoint).origin === new URL(metadata.token_endpoint).origin ? { revocation_endpoint: endpoint } : {}
}

/** The part of the metadata that is needed after the discovery. */
export const withNeededMetadata = ({ url, metadata }: AuthorizationServer): AuthorizationServer => ({
  url,
  metadata: metadata && {
    issuer: metadata.issuer,
    authorization_endpoint: metadata.authorization_endpoint,
    token_endpoint: metadata.token_endpoint,
    response_types_supported: metadata.response_types_supported,
    token_endpoint_auth_methods_supported: metadata.token_endpoint_auth_methods_supported,
    ...ownRevocation(metadata)
  } as AuthorizationServerMetadata
})

/** Parses a stored login; undefined if the value is not a login with this binding. */
export function toLoginRecord (value: unknown, binding: string): ServerLoginRecord | undefined {
  const isLogin = isObject(value) && value.binding === binding && typeof value.accessToken === 'string'
  return isLogin ? value as unknown as ServerLoginRecord : undefined
}

/** Parses a stored registration; undefined if it is not one that is still valid at this authorization server. */
export function toRegistration (
  value: unknown, binding: string, issuer: string, redirectUri: string
): StoredRegistration | undefined {
  if (!isObject(value) || value.binding !== binding || value.issuer !== issuer || value.redirectUri !== redirectUri) {
    return undefined
  }
  const registration = value as unknown as StoredRegistration
  return registration.expiresAt !== undefined && registration.expiresAt <= Date.now() ? undefined : registration
}

/** The header value for an access token (RFC 6750, section 2.1). */
export const bearerHeader = ({ accessToken }: ServerLoginRecord): string => `Bearer ${accessToken}`

/** A token is refreshed when less than this share of its lifetime, and less than this time (ms), remains. */
const refreshMargin = { share: 0.1, time: 60_000 }

/** Whether a login should be refreshed before its token is used. */
export function needsRefresh ({ expiresAt, obtainedAt, refreshToken }: ServerLoginRecord): boolean {
  if (expiresAt === undefined || refreshToken === undefined) return false
  return Date.now() >= expiresAt - Math.min((expiresAt - obtainedAt) * refreshMargin.share, refreshMargin.time)
}
