import { Type, type Static } from '@sinclair/typebox'
import { ReadOnlyMember } from './answers.ts'
import { ClosedObject } from './closed.ts'
import { StringEnum } from './string-enum.ts'

const Seconds = (value: number, maximum: number, title: string) =>
  Type.Optional(Type.Integer({
    default: value, minimum: 1, maximum, title, description: `Seconds, at most ${maximum}`
  }))
const Switch = (value: boolean, title: string, description?: string) =>
  Type.Optional(Type.Boolean({ default: value, title, description }))
const grantTypes: Array<'authorization_code' | 'refresh_token'> = ['authorization_code', 'refresh_token']

/** A scope token (RFC 6749, section 3.3). */
const Scope = Type.String({ pattern: '^[!#-\\[\\]-~]+$', maxLength: 256 })

/** `systemConfig.oauthServer`: the gateway as an authorization server. */
export const AuthorizationServerConfig = Type.Object({
  enabled: Switch(false, 'OAuth server', 'Off: applications cannot sign users in with accounts of this gateway'),
  accessTokenLifetime: Seconds(3_600, 86_400, 'Lifetime of access tokens'),
  refreshTokenLifetime: Seconds(1_209_600, 365 * 86_400, 'Lifetime of refresh tokens'),
  authorizationCodeLifetime: Seconds(60, 600, 'Lifetime of authorization codes'),
  requireClientSecret: Switch(false, 'Require client secrets', 'Refuse clients without a secret'),
  allowedScopes: Type.Optional(Type.Array(Scope, {
    default: ['mcp', 'manage', 'profile', 'openid'], title: 'Scopes', description: 'The scopes that clients may ask for'
  })),
  requireState: Switch(false, 'Require state', 'Refuse authorization requests without `state`'),
  dynamicRegistration: Type.Optional(
    Type.Object(
      {
        enabled: Switch(true, 'Allow registration by clients'),
        allowedGrantTypes: Type.Optional(Type.Array(StringEnum(grantTypes), {
          default: grantTypes, title: 'Client grant types'
        })),
        requiresAuthentication:
          Switch(false, 'Registration requires an admin', 'Clients need an admin\'s credential to register')
      },
      { default: {}, title: 'Client registration' }
    )
  )
})
export type AuthorizationServerConfig = Static<typeof AuthorizationServerConfig>

const ClientMembers = {
  name: Type.String({ minLength: 1, maxLength: 200 }),
  redirectUris: Type.Array(Type.String(), {
    minItems: 1,
    description: 'Addresses with https, http on a loopback address (any port), or the private scheme of an app'
  }),
  grants: Type.Array(StringEnum(grantTypes)),
  scopes: Type.Array(Scope, { description: '`manage` lets the client change the configuration on behalf of its users' })
}

const example = {
  clientId: 'kQ3v9ZtB2mXw7cLhY5nRfA',
  name: 'Dashboard',
  redirectUris: ['https://dashboard.example.com/callback'],
  grants: ['authorization_code', 'refresh_token'],
  scopes: ['mcp', 'profile'],
  requireSecret: true
}

/** An OAuth client that an admin creates. */
export const NewOAuthClient = ClosedObject(Type.Object({
  name: ClientMembers.name,
  redirectUris: ClientMembers.redirectUris,
  grants: Type.Optional(ClientMembers.grants),
  scopes: Type.Optional(ClientMembers.scopes),
  requireSecret: Type.Optional(Type.Boolean({ default: true, description: 'false: a public client, without a secret' }))
}, { examples: [{ name: example.name, redirectUris: example.redirectUris, scopes: example.scopes }] }))

/** An admin's change of an OAuth client. Absent members are not changed. */
export const OAuthClientUpdate = ClosedObject(Type.Partial(Type.Object({
  ...ClientMembers,
  requireSecret: Type.Boolean(),
  clientId: ReadOnlyMember,
  origin: ReadOnlyMember,
  clientUri: ReadOnlyMember,
  createdAt: ReadOnlyMember,
  lastUsedAt: ReadOnlyMember
}), { examples: [{ redirectUris: example.redirectUris }] }))

/** An OAuth client as admins see it. The secret is in the response only when it has just been generated. */
export const OAuthClientRecord = Type.Object({
  clientId: Type.String(),
  clientSecret: Type.Optional(Type.String()),
  ...ClientMembers,
  grants: Type.Array(Type.String()),
  scopes: Type.Array(Type.String()),
  requireSecret: Type.Boolean(),
  origin: StringEnum(['admin', 'registered'], {
    description: 'Whether an admin created the client, or it registered itself'
  }),
  clientUri: Type.Optional(Type.String()),
  createdAt: Type.Optional(Type.String()),
  lastUsedAt: Type.Optional(Type.String())
}, { examples: [{ ...example, origin: 'admin' }] })

/** The query that selects a page of the list of OAuth clients. */
export const OAuthClientPageQuery = Type.Object({
  page: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000, default: 1 })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 100 }))
})

export const OAuthClientList = Type.Object({
  success: Type.Literal(true),
  data: Type.Array(OAuthClientRecord),
  pagination: Type.Object(
    { page: Type.Integer(), limit: Type.Integer(), total: Type.Integer(), totalPages: Type.Integer() },
    { examples: [{ page: 1, limit: 100, total: 1, totalPages: 1 }] }
  )
})

export const OAuthClientParams = Type.Object({ clientId: Type.String() })

/** A user's consent to access by an OAuth client. */
export const ConsentRecord = Type.Object({
  clientId: Type.String(),
  clientName: Type.Optional(Type.String()),
  scopes: Type.Array(Type.String()),
  resource: Type.Optional(Type.String()),
  grantedAt: Type.String()
}, {
  examples: [{
    clientId: example.clientId, clientName: example.name, scopes: example.scopes, grantedAt: '2026-11-22T12:00:00.000Z'
  }]
})
