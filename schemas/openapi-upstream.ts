import { Type, type Static } from '@sinclair/typebox'
import { StringEnum } from './string-enum.ts'

const Text = (description: string) => Type.Optional(Type.String({ description }))
const Scopes = Type.Optional(Type.Array(Type.String(), { description: 'oauth2, openIdConnect: scopes to ask for' }))

/** What each kind of credentials takes. */
const members = {
  name: Text('apiKey: the name of the header, query parameter or cookie; default: as the description says'),
  in: Type.Optional(StringEnum(['header', 'query', 'cookie'], { description: 'apiKey: where it goes; default: as the description says' })),
  value: Text('apiKey: the key'),
  scheme: Text('http: bearer or basic, or another word to stand before the credentials'),
  token: Text('http bearer, oauth2, openIdConnect: a token that is there already'),
  username: Text('http basic'),
  password: Text('http basic'),
  credentials: Text('http: what stands behind the scheme, as it is'),
  tokenUrl: Text('oauth2: the token endpoint; default: as the description says'),
  url: Text('openIdConnect: the issuer, or its discovery document; default: as the description says'),
  clientId: Text('oauth2, openIdConnect: for a token by client credentials'),
  clientSecret: Text('oauth2, openIdConnect'),
  scopes: Scopes
}
const Members = Type.Object(members)

/** How an API's calls are authorized. The members stand beside `type`, or below it in an object of its name, as MCPHub has them. */
export const OpenApiSecurity = Type.Object({
  type: StringEnum(['none', 'apiKey', 'http', 'oauth2', 'openIdConnect']),
  ...members,
  apiKey: Type.Optional(Members),
  http: Type.Optional(Members),
  oauth2: Type.Optional(Members),
  openIdConnect: Type.Optional(Members)
})
export type OpenApiSecurity = Static<typeof OpenApiSecurity>

/** What is written down of a server of type `openapi` beside its address. */
export const OpenApiConfig = Type.Object({
  url: Text('Address of the description, JSON or YAML'),
  schema: Type.Optional(Type.Union([Type.Object({}), Type.String()], { description: 'The description itself: an object, or its text' })),
  security: Type.Optional(OpenApiSecurity),
  passthroughHeaders: Type.Optional(Type.Array(Type.String()))
})
export type OpenApiConfig = Static<typeof OpenApiConfig>

/** The members of the credentials, wherever they stand. */
export function securityOf ({
  type,
  apiKey,
  http,
  oauth2,
  openIdConnect,
  ...flat
}: OpenApiSecurity): { type: OpenApiSecurity['type'] } & Static<typeof Members> {
  return { ...flat, ...{ none: undefined, apiKey, http, oauth2, openIdConnect }[type], type }
}

/** What the credentials lack, as a sentence; undefined: nothing. */
export function securityProblem (security: OpenApiSecurity | undefined): string | undefined {
  if (!security) return undefined
  const { type, value, scheme, token, username, password, credentials, clientId, clientSecret } = securityOf(security)
  const lacks = (what: string): string => `"openapi.security" of type "${type}" needs ${what}`
  switch (type) {
    case 'none': return undefined
    case 'apiKey': return value ? undefined : lacks('a "value"')
    case 'http':
      if (scheme?.toLowerCase() === 'digest') {
        return '"openapi.security": the HTTP scheme "digest" is not supported; use "basic" or "bearer"'
      }
      if (credentials) return scheme ? undefined : lacks('a "scheme"')
      if (token) return undefined
      return username !== undefined && password !== undefined
        ? undefined
        : lacks('a "token", or "username" and "password", or "credentials"')
    default: return token || (clientId && clientSecret) ? undefined : lacks('"clientId" and "clientSecret", or a "token"')
  }
}
