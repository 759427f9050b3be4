import { Type, type Static } from '@sinclair/typebox'
import { StringEnum } from './string-enum.ts'

const Text = (description: string) => Type.Optional(Type.String({ maxLength: 2_000, description }))

/** How the gateway gets access to a remote server as an OAuth client. Unknown members are kept unchanged. */
export const UpstreamOAuth = Type.Object({
  grantType: Type.Optional(
    StringEnum(['authorization_code', 'client_credentials'], {
      description: 'client_credentials: the gateway logs in as itself, without a user. Default: authorization_code'
    })
  ),
  clientId: Text('The id of a manually registered client; without it, the gateway registers itself'),
  clientSecret: Text('The secret of that client'),
  privateKey: Type.Optional(
    Type.String({
      maxLength: 20_000,
      description: 'The private key for private_key_jwt: PKCS #8 as PEM, or a JWK as JSON'
    })
  ),
  signingAlgorithm: Type.Optional(
    StringEnum(['ES256', 'ES384', 'ES512', 'RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'EdDSA'], {
      description: 'The algorithm of signatures with this key. Default: ES256'
    })
  ),
  keyId: Text('The `kid` of that key, if the authorization server knows several'),
  tokenEndpointAuthMethod: Type.Optional(
    StringEnum(['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'], {
      description: 'How the client authenticates. Default: a method that the authorization server supports'
    })
  ),
  scopes: Type.Optional(
    Type.Array(Type.String({ pattern: '^[\\x21\\x23-\\x5B\\x5D-\\x7E]+$' }), {
      maxItems: 100,
      description: 'The scopes to request. Default: those that the server names'
    })
  ),
  issuer: Text('The issuer identifier of the only authorization server that is trusted for this login'),
  resource: Text('The resource that tokens are requested for (RFC 8707). Default: the one that the server publishes'),
  redirectUri: Text('Another address of this gateway\'s /oauth/callback, under which browsers reach it'),
  authorizationEndpoint: Text('The authorization endpoint. With it and `tokenEndpoint`, no discovery takes place'),
  tokenEndpoint: Text('The token endpoint. For client_credentials, no other endpoint is needed'),
  dynamicRegistration: Type.Optional(
    Type.Object({
      enabled: Type.Optional(Type.Boolean({
        description: 'false: the gateway does not register itself (RFC 7591)'
      }))
    })
  )
})
export type UpstreamOAuth = Static<typeof UpstreamOAuth>

/** Describes what is missing or wrong in an OAuth configuration, as a clause; undefined if it can be used. */
export function oauthProblem (oauth: UpstreamOAuth | undefined): string | undefined {
  if (oauth === undefined) return undefined
  for (const key of ['authorizationEndpoint', 'tokenEndpoint', 'redirectUri', 'issuer', 'resource'] as const) {
    const value = oauth[key]
    const isAddress =
      value === undefined || (URL.canParse(value) && (key === 'resource' || /^https?:$/.test(new URL(value).protocol)))
    if (!isAddress) return `"oauth.${key}" must be an absolute ${key === 'resource' ? '' : 'http or https '}address`
  }
  const { grantType, clientId, clientSecret, privateKey } = oauth
  if (grantType !== 'client_credentials') return undefined
  if (clientId === undefined) return '"oauth.clientId" is needed for client_credentials'
  return clientSecret === undefined && privateKey === undefined
    ? '"oauth.clientSecret" or "oauth.privateKey" is needed for client_credentials'
    : undefined
}
