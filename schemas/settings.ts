import { Type, type Static } from '@sinclair/typebox'
import { StringEnum } from './string-enum.ts'

const Selector = Type.Optional(Type.Union([Type.Literal('all'), Type.Array(Type.String())]))

/**
 * A server in a group, with the items that the group contains: `all`, or a list of own names (resources and skills:
 * URIs).
 */
export const GroupMember = Type.Object({
  name: Type.String({ minLength: 1 }),
  tools: Selector,
  prompts: Selector,
  resources: Selector,
  skills: Selector,
  alias: Type.Optional(Type.String({ minLength: 1 }))
})
export type GroupMember = Static<typeof GroupMember>

/** The id of an entry. The description is part of the error message for an entry written by hand without an id. */
const Id = Type.String({ minLength: 1, description: 'A UUID, for example from `uuidgen`' })

export const Group = Type.Object({
  id: Id,
  name: Type.String({ minLength: 1 }),
  description: Type.Optional(Type.String()),
  servers: Type.Array(Type.Union([Type.String(), GroupMember])),
  owner: Type.Optional(Type.String())
})
export type Group = Static<typeof Group>

/**
 * A bearer key as it is stored. It has a `token` if it was written into the settings file by hand, otherwise a
 * `tokenHash` (SHA-256, hex).
 */
export const BearerKey = Type.Object({
  id: Id,
  name: Type.String(),
  token: Type.Optional(Type.String({ minLength: 1 })),
  tokenHash: Type.Optional(Type.String({ pattern: '^[0-9a-f]{64}$' })),
  tokenMask: Type.Optional(Type.String()),
  /** ISO 8601. From that time on, the key is treated as disabled. */
  expiresAt: Type.Optional(Type.String()),
  createdAt: Type.Optional(Type.String()),
  lastUsedAt: Type.Optional(Type.String()),
  kind: Type.Optional(StringEnum(['system', 'user'])),
  owner: Type.Optional(Type.String()),
  createdBy: Type.Optional(Type.String({
    description: 'The user who created it; absent: the operator, in the settings file'
  })),
  accessType: Type.Optional(StringEnum(['all', 'groups', 'servers', 'custom'])),
  allowedGroups: Type.Optional(Type.Array(Type.String())),
  allowedServers: Type.Optional(Type.Array(Type.String())),
  enabled: Type.Optional(Type.Boolean())
})
export type BearerKey = Static<typeof BearerKey>

export const User = Type.Object({
  username: Type.String({ minLength: 1 }),
  password: Type.Optional(Type.String()),
  isAdmin: Type.Optional(Type.Boolean()),
  createdAt: Type.Optional(Type.String()),
  restoredAt: Type.Optional(Type.String({ description: 'ISO 8601: credentials issued before are not valid' })),
  demotedAt: Type.Optional(
    Type.String({ description: 'ISO 8601: consents that the user gave to clients before are not valid' })
  ),
  loginGroups: Type.Optional(Type.Array(Type.String(), {
    description: 'The groups from the last OpenID Connect login that `claims` of teams contained at that time'
  }))
})
export type User = Static<typeof User>

export const Routing = Type.Object({
  enableGlobalRoute: Type.Optional(Type.Boolean({
    default: true,
    title: 'Global MCP address',
    description: 'Off: `/mcp` returns 404, and agents need the address of a group or a server'
  })),
  enableGroupNameRoute: Type.Optional(Type.Boolean({
    default: true,
    title: 'Addresses with group names',
    description: 'Off: the address of a group contains its id only'
  })),
  enableBearerAuth: Type.Optional(Type.Boolean({
    default: true,
    title: 'Require credentials from agents',
    description: 'Off: everybody who can reach the gateway can call the tools of public servers over MCP'
  })),
  bearerAuthHeaderName: Type.Optional(
    Type.String({
      default: 'Authorization',
      pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$",
      title: 'Header of bearer keys',
      description: 'The name of an HTTP header, without a colon or spaces, such as `X-Api-Key`'
    })
  ),
  bearerAuthKey: Type.Optional(Type.String({
    title: 'Single key of former versions', description: 'One key for everything. Create separate keys instead'
  })),
  jsonBodyLimit: Type.Optional(
    Type.String({
      default: '1mb',
      pattern: '^[0-9]+(\\.[0-9]+)? *([kKmMgG]?[bB])?$',
      title: 'Max size of a request body',
      description: 'A number of bytes, with or without a unit, such as `1048576`, `500kb` or `10mb`'
    })
  ),
  skipAuth: Type.Optional(Type.Boolean({
    default: false,
    title: 'Admin API without authentication',
    description: 'On: everybody who can reach the gateway has admin rights in the API. The console still requires a ' +
      'login'
  }))
})
export type Routing = Static<typeof Routing>

export const NameSeparator = Type.Optional(
  Type.String({
    default: '-',
    pattern: '^[!-~]{1,8}$',
    title: 'Name separator',
    description: '1 to 8 printable ASCII characters, without spaces, between the names of a server and its item. ' +
      'Characters that model APIs do not accept are replaced by `_`. A change renames every tool: agents and prompts ' +
      'that mention tools need the new names'
  })
)

const notifiedEvents = ['approval', 'change', 'quota'] as const
/** The events that the operator's webhook receives: a pending approval, a changed definition, an exhausted quota. */
export type NotifiedEvent = typeof notifiedEvents[number]

export const NotificationSettings = Type.Object({
  url: Type.Optional(Type.String({ maxLength: 4_096, title: 'Webhook', description: 'Address of the webhook' })),
  secret: Type.Optional(Type.String({
    maxLength: 4_096,
    title: 'Signing secret',
    description: 'Signs the messages of the webhook (Standard Webhooks): `whsec_` and base64'
  })),
  events: Type.Optional(Type.Array(StringEnum([...notifiedEvents]), {
    default: [...notifiedEvents], title: 'Events', description: 'The events that are sent to the webhook'
  }))
})
export type NotificationSettings = Static<typeof NotificationSettings>

export const SystemConfig = Type.Object({
  routing: Type.Optional(Routing),
  bearerAuthKeyMigrated: Type.Optional(
    Type.Boolean({
      description: 'Set by the gateway after `routing.bearerAuthKey` was migrated to a key, which happens only once'
    })
  ),
  install: Type.Optional(
    Type.Object({
      baseUrl: Type.Optional(Type.String()),
      npmRegistry: Type.Optional(Type.String()),
      pythonIndexUrl: Type.Optional(Type.String())
    })
  ),
  nameSeparator: NameSeparator,
  enableSessionRebuild: Type.Optional(Type.Boolean({ default: false })),
  // Members in the format of other programs are kept. `OAuthServerConfig` lists the members that have an effect.
  oauthServer: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  // Set only in the file or database, not through the API; `SocialConfig` lists the members that have an effect.
  auth: Type.Optional(Type.Unknown()),
  smartRouting: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  toolResultCompression: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  notifications: Type.Optional(NotificationSettings)
})
export type SystemConfig = Static<typeof SystemConfig>
