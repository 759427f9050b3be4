import { documentsAllowed, manageScope, type OAuthSettings } from './settings.ts'

/** The grants of the token endpoint. */
export const allGrantTypes = ['authorization_code', 'refresh_token'] as const

/** How clients may authenticate at the token endpoint. */
export const authMethods = (settings: OAuthSettings): string[] =>
  [...settings.requireClientSecret ? [] : ['none'], 'client_secret_basic', 'client_secret_post']

/** The metadata of the authorization server (RFC 8414; RFC 9207; Client ID Metadata Documents). */
export function serverMetadata (issuer: string, settings: OAuthSettings): Record<string, unknown> {
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
    token_endpoint_auth_methods_supported: authMethods(settings),
    revocation_endpoint_auth_methods_supported: authMethods(settings),
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: true,
    client_id_metadata_document_supported: documentsAllowed(settings)
  }
}

/** The metadata of a protected resource (RFC 9728). @param path of the resource below the issuer, `''` for all of the gateway */
export function resourceMetadata (issuer: string, path: string, { allowedScopes }: OAuthSettings): Record<string, unknown> {
  return {
    resource: `${issuer}${path}`,
    authorization_servers: [issuer],
    // Clients ask for all of these: what changes the configuration is for those who know that they want it.
    scopes_supported: allowedScopes.filter((scope) => scope !== manageScope),
    bearer_methods_supported: ['header'],
    resource_name: 'Tool-Hub'
  }
}
