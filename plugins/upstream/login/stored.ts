import type { AuthorizationServerMetadata, OAuthTokens } from '@modelcontextprotocol/sdk/shared/auth.js'
import { UpstreamError } from '../../../protocol/errors.ts'
import { isObject } from '../../../protocol/json.ts'
import { scopesIn } from './challenge.ts'
import { upstreamLimits } from '../limits.ts'

/**
 * An authorization server. `url`: the identifier by which it was found; `metadata` undefined: it publishes none (MCP
 * 2025-03-26).
 */
export interface AuthorizationServer {
  readonly url: string, readonly metadata: AuthorizationServerMetadata | undefined
}

/** The gateway as a client of an authorization server. */
export interface LoginClient {
  readonly id: string
  readonly secret?: string
  /** The method that the registration was answered with. */
  readonly method?: string
}

/** A stored registration (RFC 7591), valid at that authorization server and for that redirect URI only. */
export interface StoredRegistration {
  readonly binding: string
  readonly issuer: string
  readonly redirectUri: string
  readonly client: LoginClient
  /** In ms since 1970; undefined: it does not expire. */
  readonly expiresAt?: number
}

/** A stored login, with all that a refresh needs: no later metadata can have its refresh token sent elsewhere. */
export interface ServerLoginRecord {
  /** Identifies the server's target and the account of the holder; the login is valid for both only. */
  readonly binding: string
  readonly accessToken: string
  readonly refreshToken?: string
  /** In ms since 1970. */
  readonly obtainedAt: number
  /** In ms since 1970; undefined: the authorization server does not say. */
  readonly expiresAt?: number
  /** All scopes that were asked for or granted. */
  readonly scopes: readonly string[]
  readonly server: AuthorizationServer
  readonly client: LoginClient
  readonly resource?: string
}

/** What stays the same when a login gets other tokens. */
export type LoginFrame = Omit<ServerLoginRecord, 'accessToken' | 'refreshToken' | 'obtainedAt' | 'expiresAt'>

/**
 * A login from the answer of a token endpoint.
 * @param refreshToken the former one, which stays valid where the answer has none (RFC 6749 §6)
 * @throws UpstreamError for a token that no header can carry
 */
export function loginFrom (frame: LoginFrame, tokens: OAuthTokens, refreshToken?: string): ServerLoginRecord {
  const { access_token: accessToken, refresh_token: next = refreshToken, expires_in: lifetime, scope } = tokens
  if (!/^[\x21-\x7e]+$/.test(accessToken) ||
      Math.max(accessToken.length, next?.length ?? 0) > upstreamLimits.login.token) {
    throw new UpstreamError('unauthorized', 'its authorization server gave a token that no header ' +
      'can carry', { isPublic: true })
  }
  const now = Date.now()
  return {
    ...frame,
    scopes: [...new Set([...frame.scopes, ...scopesIn(scope)])],
    accessToken,
    ...(next === undefined ? {} : { refreshToken: next }),
    obtainedAt: now,
    ...(lifetime === undefined ? {} : { expiresAt: now + lifetime * 1_000 })
  }
}

/** The revocation endpoint, if its origin is that of the token endpoint: no other one gets tokens. */
function ownRevocation (metadata: AuthorizationServerMetadata): { revocation_endpoint?: string } {
  const endpoint = 'revocation_endpoint' in metadata ? metadata.revocation_endpoint : undefined
  if (typeof endpoint !== 'string' || !URL.canParse(endpoint)) return {}
  return new URL(endpoint).origin === new URL(metadata.token_endpoint).origin ? { revocation_endpoint: endpoint } : {}
}

/** The members of metadata that are needed after the discovery. */
export const essence = ({ url, metadata }: AuthorizationServer): AuthorizationServer => ({
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

/** A stored value as a login of this binding; undefined: it is none. */
export function asLogin (value: unknown, binding: string): ServerLoginRecord | undefined {
  const isLogin = isObject(value) && value.binding === binding && typeof value.accessToken === 'string'
  return isLogin ? value as unknown as ServerLoginRecord : undefined
}

/** A stored value as a registration that is still valid at this authorization server; undefined: it is none. */
export function asRegistration (
  value: unknown, binding: string, issuer: string, redirectUri: string
): StoredRegistration | undefined {
  if (!isObject(value) || value.binding !== binding || value.issuer !== issuer || value.redirectUri !== redirectUri) {
    return undefined
  }
  const registration = value as unknown as StoredRegistration
  return registration.expiresAt !== undefined && registration.expiresAt <= Date.now() ? undefined : registration
}

/** The header with an access token (RFC 6750 §2.1). */
export const bearer = ({ accessToken }: ServerLoginRecord): string => `Bearer ${accessToken}`

/** What is left of a token's life when it is refreshed: at most this share, and this time in ms. */
const early = { share: 0.1, time: 60_000 }

/** Whether a login is to be refreshed before its token is used. */
export function isDue ({ expiresAt, obtainedAt, refreshToken }: ServerLoginRecord): boolean {
  if (expiresAt === undefined || refreshToken === undefined) return false
  return Date.now() >= expiresAt - Math.min((expiresAt - obtainedAt) * early.share, early.time)
}
