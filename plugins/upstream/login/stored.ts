import type { AuthorizationServerMetadata, OAuthTokens } from '@modelcontextprotocol/sdk/shared/auth.js'
import { UpstreamError } from '../../../protocol/errors.ts'
import { isObject } from '../../../protocol/json.ts'
import { parseScopes } from './challenge.ts'
import { upstreamLimits } from '../limits.ts'

/** An authorization server. */
export interface AuthorizationServer {
  /** The URL at which the server was found: its issuer, as named by the config or the resource. */
  readonly url: string
  /** The server's metadata (RFC 8414); undefined if it publishes none, as allowed in MCP 2025-03-26. */
  readonly metadata: AuthorizationServerMetadata | undefined
}

/** The gateway's OAuth client at one authorization server. */
export interface UpstreamOAuthClient {
  readonly id: string
  readonly secret?: string
  /** The client authentication method that the registration returned; undefined if it returned none. */
  readonly method?: string
}

/**
 * The stored registration of the gateway as a client (RFC 7591). It is valid only for its binding, authorization server
 * and redirect URI.
 */
export interface StoredRegistration {
  /** A hash of the server's owner and addresses. */
  readonly binding: string
  readonly issuer: string
  readonly redirectUri: string
  readonly client: UpstreamOAuthClient
  /** The scopes that the registration names; undefined if it names none, so that the client may request any. */
  readonly scopes?: readonly string[]
  /** When the client's secret expires, in ms since the epoch; undefined if it does not expire. */
  readonly expiresAt?: number
}

/**
 * A stored login at a server. It contains all that a refresh needs, so that metadata that changes later cannot redirect
 * the refresh token.
 */
export interface ServerLoginRecord {
  /** A hash of the server's owner and addresses and of the holder's account; the login is valid only for these. */
  readonly binding: string
  readonly accessToken: string
  readonly refreshToken?: string
  /** When the access token was issued, in ms since the epoch. */
  readonly obtainedAt: number
  /** When the access token expires, in ms since the epoch; undefined if the authorization server does not state it. */
  readonly expiresAt?: number
  /** All scopes that were requested or granted. */
  readonly scopes: readonly string[]
  readonly server: AuthorizationServer
  readonly client: UpstreamOAuthClient
  /** The resource for which the tokens were requested (RFC 8707). */
  readonly resource?: string
}

/** A login before it has tokens. */
export type LoginWithoutTokens = Omit<ServerLoginRecord, 'accessToken' | 'refreshToken' | 'obtainedAt' | 'expiresAt'>

/**
 * Matches the types of tokens that are no bearer tokens: those that need a proof (RFC 9449), and N_A (RFC 8693). Other
 * types are used as bearer tokens, since some authorization servers state types of their own, such as `user` or `bot`.
 */
const unusableTypes = /^(dpop|pop|mac|n_a)$/i

/**
 * Creates a login from the response of a token endpoint.
 * @param frame the login without tokens; scopes that the response grants are added
 * @param refreshToken the former refresh token, which stays valid if the response has none (RFC 6749, section 6)
 * @throws UpstreamError for a token that is too long, not allowed in a header, or of an unusable type
 */
export function createLogin (frame: LoginWithoutTokens, tokens: OAuthTokens, refreshToken?: string): ServerLoginRecord {
  const {
    access_token: accessToken, refresh_token: next = refreshToken, expires_in: lifetime, scope, token_type: type
  } = tokens
  if (unusableTypes.test(type)) {
    throw new UpstreamError(
      'unauthorized',
      `its authorization server issued a token of type ${type}, which the gateway does not support`,
      { isPublic: true }
    )
  }
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

/** Returns the revocation endpoint if it has the origin of the token endpoint: other origins must not get tokens. */
function ownRevocation (metadata: AuthorizationServerMetadata): { revocation_endpoint?: string } {
  const endpoint = 'revocation_endpoint' in metadata ? metadata.revocation_endpoint : undefined
  if (typeof endpoint !== 'string' || !URL.canParse(endpoint)) return {}
  return new URL(endpoint).origin === new URL(metadata.token_endpoint).origin ? { revocation_endpoint: endpoint } : {}
}

/** Returns an authorization server with only those members of its metadata that are needed after the discovery. */
export const withReducedMetadata = ({ url, metadata }: AuthorizationServer): AuthorizationServer => ({
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

/** Validates a stored login. @returns undefined if the value is not a login with this binding */
export function toLoginRecord (value: unknown, binding: string): ServerLoginRecord | undefined {
  const isLogin = isObject(value) && value.binding === binding && typeof value.accessToken === 'string'
  return isLogin ? value as unknown as ServerLoginRecord : undefined
}

/** Validates a stored registration. @returns undefined if it has expired, or is for another binding, issuer or URI */
export function toRegistration (
  value: unknown, binding: string, issuer: string, redirectUri: string
): StoredRegistration | undefined {
  if (!isObject(value) || value.binding !== binding || value.issuer !== issuer || value.redirectUri !== redirectUri) {
    return undefined
  }
  const registration = value as unknown as StoredRegistration
  return registration.expiresAt !== undefined && registration.expiresAt <= Date.now() ? undefined : registration
}

/** Returns the `Authorization` header for a login's access token (RFC 6750, section 2.1). */
export const bearerHeader = ({ accessToken }: ServerLoginRecord): string => `Bearer ${accessToken}`

/** A token is refreshed if less than this share of its lifetime, and less than this `time` in ms, remains. */
const refreshMargin = { share: 0.1, time: 60_000 }

/** Whether a login should be refreshed before its token is used. */
export function needsRefresh ({ expiresAt, obtainedAt, refreshToken }: ServerLoginRecord): boolean {
  if (expiresAt === undefined || refreshToken === undefined) return false
  return Date.now() >= expiresAt - Math.min((expiresAt - obtainedAt) * refreshMargin.share, refreshMargin.time)
}
