import { Value } from '@sinclair/typebox/value'
import type { OAuthClient } from '../../../db/ports/clients.ts'
import { memoized } from '../../../protocol/memoized.ts'
import { AuthorizationServerConfig } from '../../../schemas/oauth.ts'
import type { SystemConfig } from '../../../schemas/settings.ts'
import { isLoopback, parseTrustProxy } from '../../base/config/index.ts'
import { findBaseUrlSetting, withDefaults } from '../../settings/index.ts'

/** `systemConfig.oauthServer` with all defaults filled in. Lifetimes are in seconds. */
export type OAuthSettings = Required<Omit<AuthorizationServerConfig, 'dynamicRegistration'>> & {
  dynamicRegistration: Required<NonNullable<AuthorizationServerConfig['dynamicRegistration']>>
}

/** Returns the settings of the authorization server. */
export const oauthSettingsOf = memoized(({ oauthServer }: SystemConfig): OAuthSettings =>
  withDefaults(AuthorizationServerConfig, oauthServer, { dynamicRegistration: {} }) as OAuthSettings)

/** The environment variables that determine the addresses given to clients, and the address that HOST resolves to. */
interface Addressing {
  readonly env: { readonly HOST: string, readonly TRUST_PROXY?: string, readonly BASE_URL?: string }
  readonly listenAddress: string
}

/**
 * Returns one sentence for each problem in the stored settings of the authorization server: invalid members, whose
 * defaults apply instead, and, while the server is enabled, a public address that is missing or not encrypted.
 */
export function oauthSettingsProblems (system: SystemConfig, addressing: Addressing): string[] {
  const { oauthServer } = system
  const sentences = [...Value.Errors(AuthorizationServerConfig, oauthServer ?? {})]
    .map(({ path, message }) => `oauthServer${path.replaceAll('/', '.')} is not used: ${message.toLowerCase()}. Its ` +
      'default applies instead')
  const address = oauthServer?.enabled === true ? addressProblem(system, addressing) : undefined
  return address === undefined ? sentences : [...sentences, address]
}

function addressProblem (system: SystemConfig, { env, listenAddress }: Addressing): string | undefined {
  const { HOST: host, TRUST_PROXY: proxy = '' } = env
  const stated = findBaseUrlSetting(system, env)
  const url = stated && URL.canParse(stated.text) ? new URL(stated.text) : undefined
  if (stated && url) {
    const isOpen = url.protocol === 'http:' && !isLoopback(url.hostname)
    return isOpen ? `${stated.name} is an http address: passwords, codes and tokens can be intercepted` : undefined
  }
  if (isLoopback(listenAddress) || parseTrustProxy(proxy) !== false) return undefined
  return host === '0.0.0.0' || host === '::'
    ? `BASE_URL (or install.baseUrl) is not set, and the gateway listens on ${host}: clients on other machines get ` +
      'addresses at localhost, and cannot log in. Set it to the address that they use, with https'
    : `BASE_URL (or install.baseUrl) is not set: clients get http addresses at ${host}, where passwords, ` +
      'codes and tokens can be intercepted'
}

/** The scope that allows changing the configuration. Only clients created by an admin can have it. */
export const manageScope = 'manage'

/**
 * Returns the scopes that a client may be granted: those that both the settings and its registration allow. `manage`
 * requires a client created by an admin.
 * @param client undefined for a client described by a metadata document
 */
export function grantableScopes (
  client: Pick<OAuthClient, 'origin' | 'scope'> | undefined, { allowedScopes }: OAuthSettings
): string[] {
  const own = client?.scope.split(' ')
  return allowedScopes.filter((scope) =>
    (own?.includes(scope) ?? true) && (scope !== manageScope || client?.origin === 'admin'))
}

/** The `scope` parameter that an authorization request without scopes gets. */
export const defaultScope = 'mcp profile'

/**
 * Whether Client ID Metadata Documents are accepted. A client described by such a document has no secret and needs no
 * registration, so the settings must allow clients without a secret, and dynamic registration without authentication.
 */
export const allowsClientMetadataDocuments = ({ dynamicRegistration, requireClientSecret }: OAuthSettings): boolean =>
  dynamicRegistration.enabled && !dynamicRegistration.requiresAuthentication && !requireClientSecret

/** The grant types of the token endpoint. */
export const allGrantTypes = ['authorization_code', 'refresh_token'] as const

/** Returns the methods by which clients may authenticate at the token endpoint. */
export const clientAuthMethods = (settings: OAuthSettings): string[] =>
  [...settings.requireClientSecret ? [] : ['none'], 'client_secret_basic', 'client_secret_post']

/** Returns the metadata of the authorization server (RFC 8414; RFC 9207; Client ID Metadata Documents). */
export function authorizationServerMetadata (issuer: string, settings: OAuthSettings): Record<string, unknown> {
  const { allowedScopes, dynamicRegistration: { enabled, allowedGrantTypes } } = settings
  return {
    issuer,
    authorization_endpoint: `${issuer}/oauth/authorize`,
    token_endpoint: `${issuer}/oauth/token`,
    ...(enabled ? { registration_endpoint: `${issuer}/oauth/register` } : {}),
    revocation_endpoint: `${issuer}/oauth/revoke`,
    userinfo_endpoint: `${issuer}/oauth/userinfo`,
    scopes_supported: allowedScopes,
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    grant_types_supported: allowedGrantTypes,
    token_endpoint_auth_methods_supported: clientAuthMethods(settings),
    revocation_endpoint_auth_methods_supported: clientAuthMethods(settings),
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: true,
    client_id_metadata_document_supported: allowsClientMetadataDocuments(settings)
  }
}

/**
 * Returns the metadata of a protected resource (RFC 9728).
 * @param path the path of the resource below the issuer, `''` for the whole gateway
 */
export function protectedResourceMetadata (
  issuer: string, path: string, { allowedScopes }: OAuthSettings
): Record<string, unknown> {
  return {
    resource: `${issuer}${path}`,
    authorization_servers: [issuer],
    // Clients request every scope listed here; `manage` must be requested explicitly.
    scopes_supported: allowedScopes.filter((scope) => scope !== manageScope),
    bearer_methods_supported: ['header'],
    resource_name: 'Tool-Hub'
  }
}
