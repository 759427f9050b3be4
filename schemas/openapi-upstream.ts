import { Type, type Static } from '@sinclair/typebox'
import { StringEnum } from './string-enum.ts'

const Text = (description: string) => Type.Optional(Type.String({ description }))
const Scopes = Type.Optional(Type.Array(Type.String(), { description: 'oauth2, openIdConnect: scopes to ask for' }))

/** The members of all kinds of credentials. */
const members = {
  name: Text('apiKey: the name of the header, query parameter or cookie; default: as the description says'),
  in: Type.Optional(StringEnum(['header', 'query', 'cookie'], { description: 'apiKey: where it goes; default: as the description says' })),
  value: Text('apiKey: the key'),
  scheme: Text('http: bearer, basic, or another authentication scheme'),
  token: Text('http bearer, oauth2, openIdConnect: an existing token'),
  username: Text('http basic'),
  password: Text('http basic'),
  credentials: Text('http: the text after the scheme, sent unchanged'),
  tokenUrl: Text('oauth2: the token endpoint; default: as the description says'),
  url: Text('openIdConnect: the issuer, or its discovery document; default: as the description says'),
  clientId: Text('oauth2, openIdConnect: for the client credentials grant'),
  clientSecret: Text('oauth2, openIdConnect'),
  scopes: Scopes
}
const Members = Type.Object(members)

/** The credentials for an API. The members are beside `type`, or, as in MCPHub, in an object that is named like the type. */
export const OpenApiSecurity = Type.Object({
  type: StringEnum(['none', 'apiKey', 'http', 'oauth2', 'openIdConnect']),
  ...members,
  apiKey: Type.Optional(Members),
  http: Type.Optional(Members),
  oauth2: Type.Optional(Members),
  openIdConnect: Type.Optional(Members)
})
export type OpenApiSecurity = Static<typeof OpenApiSecurity>

/** The config of a server of type `openapi`, apart from its address. */
export const OpenApiConfig = Type.Object({
  url: Text('Address of the description, JSON or YAML'),
  schema: Type.Optional(Type.Union([Type.Object({}), Type.String()], { description: 'The description itself: an object, or its text' })),
  security: Type.Optional(OpenApiSecurity),
  passthroughHeaders: Type.Optional(Type.Array(Type.String()))
})
export type OpenApiConfig = Static<typeof OpenApiConfig>

/** The credentials in one form, with all members beside `type`. */
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

/** A message about missing members of the credentials; undefined: they are complete. */
export function securityProblem (security: OpenApiSecurity | undefined): string | undefined {
  if (!security) return undefined
  const { type, value, scheme, token, username, password, credentials, clientId, clientSecret } = securityOf(security)
  const needs = (members: string): string => `"openapi.security" of type "${type}" needs ${members}`
  switch (type) {
    case 'none': return undefined
    case 'apiKey': return value ? undefined : needs('a "value"')
    case 'http':
      if (scheme?.toLowerCase() === 'digest') {
        return '"openapi.security": the HTTP scheme "digest" is not supported; use "basic" or "bearer"'
      }
      if (credentials) return scheme ? undefined : needs('a "scheme"')
      if (token) return undefined
      return username !== undefined && password !== undefined
        ? undefined
        : needs('a "token", or "username" and "password", or "credentials"')
    default: return token || (clientId && clientSecret) ? undefined : needs('"clientId" and "clientSecret", or a "token"')
  }
}
