import { Type, type Static } from '@sinclair/typebox'
import { StringEnum } from './string-enum.ts'

/**
 * Max number of entries in each map and list of a server's config: environment variables, headers, arguments,
 * overrides. A new config with more is rejected with status 400; a stored config is kept, but its server is not
 * connected.
 */
export const maxConfigEntries = 400

const Text = (description: string) => Type.Optional(Type.String({ description }))
const Scopes = Type.Optional(Type.Array(Type.String(), { description: 'oauth2, openIdConnect: scopes to request' }))

/** The members of all credential types. */
const members = {
  name: Text('apiKey: the name of the header, query parameter or cookie; default: from the API description'),
  in: Type.Optional(StringEnum(['header', 'query', 'cookie'], {
    description: 'apiKey: the location of the key; default: from the API description'
  })),
  value: Text('apiKey: the key'),
  scheme: Text('http: bearer, basic or another authentication scheme'),
  token: Text('http bearer, oauth2, openIdConnect: an existing token'),
  username: Text('http basic'),
  password: Text('http basic'),
  credentials: Text('http: the credentials after the scheme, sent unchanged'),
  tokenUrl: Text('oauth2: the token endpoint; default: from the API description'),
  url: Text('openIdConnect: the issuer, or its discovery document; default: from the API description'),
  clientId: Text('oauth2, openIdConnect: the client id for the client credentials grant'),
  clientSecret: Text('oauth2, openIdConnect: the secret of this client'),
  scopes: Scopes
}
const Members = Type.Object(members)

/**
 * The credentials for calls of an HTTP API. Their members are next to `type` or, as in MCPHub, in an object that is
 * named after the type.
 */
export const OpenApiSecurity = Type.Object({
  type: StringEnum(['none', 'apiKey', 'http', 'oauth2', 'openIdConnect']),
  ...members,
  apiKey: Type.Optional(Members),
  http: Type.Optional(Members),
  oauth2: Type.Optional(Members),
  openIdConnect: Type.Optional(Members)
})
export type OpenApiSecurity = Static<typeof OpenApiSecurity>

/** The settings of a server of type `openapi`, in addition to its `url`. */
export const OpenApiConfig = Type.Object({
  url: Text('Address of the API description, JSON or YAML'),
  schema: Type.Optional(Type.Union([Type.Object({}), Type.String()], {
    description: 'The API description itself: an object, or a text'
  })),
  security: Type.Optional(OpenApiSecurity),
  passthroughHeaders: Type.Optional(Type.Array(Type.String(), {
    maxItems: maxConfigEntries, description: 'Names of client headers that are forwarded to the API'
  }))
})
export type OpenApiConfig = Static<typeof OpenApiConfig>

/** Returns the credentials with all members next to `type`. */
export function normalizeSecurity ({
  type,
  apiKey,
  http,
  oauth2,
  openIdConnect,
  ...flat
}: OpenApiSecurity): { type: OpenApiSecurity['type'] } & Static<typeof Members> {
  return { ...flat, ...{ none: undefined, apiKey, http, oauth2, openIdConnect }[type], type }
}

/** Describes what is missing or not supported in credentials, as a sentence; undefined if they can be used. */
export function securityProblem (security: OpenApiSecurity | undefined): string | undefined {
  if (!security) return undefined
  const { type, value, scheme, token, username, password, credentials, clientId, clientSecret } =
    normalizeSecurity(security)
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
    default: return token || (clientId && clientSecret)
      ? undefined
      : lacks('"clientId" and "clientSecret", or a "token"')
  }
}
