import { Type, type TSchema } from '@sinclair/typebox'
import { Closed } from './closed.ts'
import { GroupMember } from './settings.ts'
import { StringEnum } from './string-enum.ts'

/** A member that a change may repeat as it was answered. */
export const Unchanged = Type.String({ description: 'May be sent as it was answered; it cannot be changed' })

/** The response of a management route that succeeded. */
export const Success = <Data extends TSchema>(data: Data) =>
  Type.Object({ success: Type.Literal(true), data, message: Type.Optional(Type.String()) })
/** The same for a write that may name what is not there. */
export const SuccessWithWarnings = <Data extends TSchema>(data: Data) => Type.Object({
  success: Type.Literal(true),
  data,
  message: Type.Optional(Type.String()),
  warnings: Type.Optional(Type.Array(Type.String(), {
    description: 'What was stored and has no effect, or another one than it seems to have: a sentence each. Absent: ' +
      'nothing'
  }))
})
/** The same without data. */
export const Done = Type.Object(
  { success: Type.Literal(true), message: Type.Optional(Type.String()) },
  { examples: [{ success: true, message: 'It was removed' }] }
)

export const Failure = Type.Object({
  success: Type.Literal(false),
  message: Type.String({ description: 'What is wrong, and what to change' }),
  code: Type.Optional(Type.String()),
  errors: Type.Optional(
    Type.Array(Type.Union([Type.String(), Type.Object({ path: Type.String(), message: Type.String() })]))
  )
})

const Permissions = Type.Object({
  admin: Type.Boolean(),
  servers: StringEnum(['all', 'visible']),
  users: Type.Boolean(),
  system: Type.Boolean()
})

export const Account = Type.Object({ username: Type.String(), isAdmin: Type.Boolean(), permissions: Permissions }, {
  examples: [
    { username: 'ada', isAdmin: false, permissions: { admin: false, servers: 'visible', users: false, system: false } }
  ]
})

export const Credentials = Type.Object(
  { username: Type.String({ minLength: 1, maxLength: 256 }), password: Type.String({ minLength: 1, maxLength: 1024 }) },
  { examples: [{ username: 'admin', password: 'the password of the first start' }] }
)

export const Login = Type.Object({
  success: Type.Literal(true),
  message: Type.String(),
  token: Type.String(),
  user: Account,
  isUsingDefaultPassword: Type.Optional(Type.Boolean())
})

const Item = Type.Object(
  { enabled: Type.Boolean(), overridden: Type.Optional(Type.Boolean()) },
  {
    additionalProperties: true,
    description: 'As the upstream listed it',
    examples: [
      {
        name: 'read_file',
        description: 'Reads a file of the project',
        inputSchema: { type: 'object', properties: { path: { type: 'string' } } },
        enabled: true,
        overridden: true
      }
    ]
  }
)

/**
 * Items are written as the JSON text in which the upstream sent them: routes serialize their records with
 * `writeRecords`.
 */
const Items = Type.Unsafe<object>(Type.Array(Item))

const EraOfServer =
  Type.Optional(StringEnum(['legacy', 'modern'], { description: '`modern`: since 2026-07-28, without sessions' }))

export const ServerRecord = Type.Object(
  {
    name: Type.String(),
    enabled: Type.Boolean(),
    status: StringEnum(['connecting', 'connected', 'disconnected', 'oauth_required', 'disabled']),
    error: Type.Union([Type.String(), Type.Null()], { description: 'What to do when it is not connected' }),
    warnings: Type.Optional(Type.Array(Type.String(), {
      description: 'Problems that do not keep the server from ' +
      'working'
    })),
    tools: Items,
    prompts: Items,
    resources: Items,
    config: Type.Object({}, { additionalProperties: true, description: 'Secrets are masked' }),
    createdAt: Type.Optional(Type.String()),
    connectedAt: Type.Optional(Type.String()),
    protocolVersion: Type.Optional(Type.String({
      description: 'The MCP revision that it is spoken to in, while it is ' +
      'connected'
    })),
    era: EraOfServer,
    oauth: Type.Optional(
      Type.Object({ authorizationUrl: Type.String() }, {
        description: 'The address to open, to log in at the server; ' +
        'good for an hour'
      })
    )
  },
  {
    examples: [
      {
        name: 'issues',
        enabled: true,
        status: 'connected',
        error: null,
        tools: [{ name: 'search', description: 'Finds issues', inputSchema: { type: 'object' }, enabled: true }],
        prompts: [],
        resources: [],
        config: {
          url: 'https://mcp.example.com/mcp',
          headers: { Authorization: '••••1f0c' },
          enabled: true,
          owner: 'admin',
          visibility: 'public'
        },
        createdAt: '2026-11-20T09:00:00.000Z',
        connectedAt: '2026-11-20T09:00:01.250Z',
        protocolVersion: '2026-07-28',
        era: 'modern'
      }
    ]
  }
)

export const PageQuery = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, description: 'Max entries of the page' })),
  cursor: Type.Optional(Type.String({ description: 'The `nextCursor` of the page before' })),
  fields: Type.Optional(Type.String({ description: 'Only these members, comma-separated' }))
})

/** A complete list, or one page of it. */
export const PageOf = <Item extends TSchema>(item: Item) => Type.Object({
  success: Type.Literal(true),
  data: Type.Array(item),
  nextCursor: Type.Optional(Type.String({
    description: 'Send it as `cursor` for the next page; absent on the ' +
    'last one'
  }))
})

/** Not described further here: the gateway checks configs itself, with clearer messages. */
const Config = Type.Object({}, { additionalProperties: true })
export const NewServer = Type.Object(
  { name: Type.String(), config: Config },
  {
    examples: [
      {
        name: 'files',
        config: {
          command: 'npx', args: ['-y', '@modelcontextprotocol/server-filesystem', '/srv/files']
        }
      },
      { name: 'issues', config: { url: 'https://mcp.example.com/mcp', headers: { Authorization: 'Bearer …' } } }
    ]
  }
)
export const ServerUpdate = Type.Object(
  { config: Config, newName: Type.Optional(Type.String()) },
  { examples: [{ config: { url: 'https://mcp.example.com/mcp', visibility: 'public' }, newName: 'tickets' }] }
)
export const Toggle = Type.Object({ enabled: Type.Boolean() }, { examples: [{ enabled: false }] })
export const ServerName = Type.Object({ name: Type.String() })

/** Servers by their names, as other programs write them down. */
const ByName = (description: string) =>
  Type.Object({}, { additionalProperties: true, maxProperties: 1_000, description })
/** Each entry is checked alone: an invalid one is reported in the results, and the others are stored. */
export const NewServers = Type.Object(
  {
    servers: Type.Optional(Type.Union([
      Type.Array(Type.Unknown(), { minItems: 1, maxItems: 1_000, description: 'Entries as the body of POST /servers' }),
      ByName('As VS Code has them')
    ])),
    mcpServers: Type.Optional(ByName('As Claude, Cursor, Cline, Windsurf, mcp-hub and MCPHub have them'))
  },
  {
    additionalProperties: true,
    description: 'A list of servers, or the configuration file of a client as it is',
    examples: [
      {
        servers: [
          {
            name: 'files',
            config: {
              command: 'npx', args: ['-y', '@modelcontextprotocol/server-filesystem', '/srv/files']
            }
          },
          { name: 'issues', config: { url: 'https://mcp.example.com/mcp' } }
        ]
      },
      {
        mcpServers: {
          files: { command: 'npx', args: ['-y', '@modelcontextprotocol/server-filesystem', '/srv/files'] }
        }
      }
    ]
  }
)

export const ServerToTest = Type.Object(
  {
    name: Type.Optional(Type.String({ description: 'A stored server: masks in `config` then stand for its secrets' })),
    config: Config
  },
  { examples: [{ config: { url: 'https://mcp.example.com/mcp' } }] }
)
export const ServerTested = Type.Object(
  {
    connected: Type.Boolean(),
    status: StringEnum(['connected', 'disconnected', 'oauth_required']),
    error: Type.Union([Type.String(), Type.Null()], { description: 'Why it does not connect' }),
    warnings: Type.Array(Type.String()),
    protocolVersion: Type.Optional(Type.String({ description: 'The MCP revision that it was spoken to in' })),
    era: EraOfServer,
    serverInfo: Type.Optional(Type.Unknown()),
    tools: Items,
    prompts: Items,
    resources: Items,
    duration: Type.Integer({ description: 'In ms' })
  },
  {
    examples: [
      {
        connected: true,
        status: 'connected',
        error: null,
        warnings: [],
        protocolVersion: '2025-11-25',
        era: 'legacy',
        serverInfo: { name: 'issues', version: '1.0.0' },
        tools: [{ name: 'search', description: 'Finds issues', inputSchema: { type: 'object' }, enabled: true }],
        prompts: [],
        resources: [],
        duration: 240
      }
    ]
  }
)
const BatchData = Type.Object({
  results: Type.Array(Type.Object({
    name: Type.String(),
    success: Type.Boolean(),
    unchanged: Type.Optional(Type.Literal(true, { description: 'It was there already, as it was sent' })),
    message: Type.Optional(Type.String()),
    warnings: Type.Optional(Type.Array(Type.String()))
  })),
  successCount: Type.Integer(),
  failureCount: Type.Integer()
})
export const BatchDone = Type.Object({
  success: Type.Literal(true),
  data: BatchData,
  message: Type.Optional(Type.String()),
  warnings: Type.Optional(Type.Array(Type.String(), { description: 'About members of the body that are no servers' }))
})
export const BatchFailed = Type.Object({
  success: Type.Literal(false),
  data: Type.Optional(BatchData),
  message: Type.String(),
  code: Type.Optional(Type.String()),
  errors: Type.Optional(Type.Array(Type.Unknown()))
})

export const ItemRecord = Item
export const NewDescription = Type.Object(
  { description: Type.String({ maxLength: 16 * 1024 }) },
  { examples: [{ description: 'Reads a file of the project' }] }
)

const Members = Type.Array(Type.Union([Type.String({ minLength: 1 }), GroupMember]))
const SentMembers = Type.Array(Type.Union([Type.String({ minLength: 1 }), Closed(GroupMember)]))
export const GroupRecord = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    description: Type.Optional(Type.String()),
    servers: Members,
    owner: Type.Optional(Type.String())
  },
  {
    examples: [
      {
        id: '0b6c5f0e-6f0c-4e0e-9c57-2f8d1a7f3b11',
        name: 'daily',
        description: 'What everybody needs',
        servers: ['issues', { name: 'files', tools: ['read_file'], prompts: 'all', resources: 'all', alias: 'f' }],
        owner: 'admin'
      }
    ]
  }
)
const GroupName = Type.String({ minLength: 1, maxLength: 128 })
export const NewGroup = Closed(Type.Object(
  {
    name: GroupName,
    description: Type.Optional(Type.String()),
    servers: Type.Optional(SentMembers),
    owner: Type.Optional(Type.String({ description: 'A user; only an admin can name another one than the caller' }))
  },
  {
    examples: [
      {
        name: 'daily',
        description: 'What everybody needs',
        servers: ['issues', { name: 'files', tools: ['read_file'], prompts: 'all', resources: 'all', alias: 'f' }]
      }
    ]
  }
))
export const GroupUpdate = Closed(Type.Partial(Type.Object({ ...NewGroup.properties, id: Unchanged }), {
  examples: [{ description: 'What everybody needs, and more' }]
}))
export const GroupId = Type.Object({ id: Type.String() })

/**
 * What a record has beside the members that a route takes: it may be sent as it was answered, and has no effect there.
 */
const Beside = (...names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, Type.Optional(Type.Unknown())]))
export const GroupMembers = Closed(Type.Object(
  { servers: SentMembers, ...Beside('id', 'name', 'description', 'owner') },
  { examples: [{ servers: ['issues', { name: 'files', tools: ['read_file'] }] }] }
))
export const NewGroupMember =
  Closed(Type.Object({ serverName: Type.String({ minLength: 1 }) }, { examples: [{ serverName: 'files' }] }))
export const GroupMemberName = Type.Object({ id: Type.String(), serverName: Type.String() })
const Selection =
  Type.Union([Type.Literal('all'), Type.Array(Type.String())], { description: '`all`, or own names (resources: URIs)' })
export const ToolSelection = Closed(Type.Object(
  { tools: Selection, ...Beside('name', 'prompts', 'resources', 'alias') },
  { examples: [{ tools: ['read_file', 'list_directory'] }] }
))
export const GroupMemberConfig = Type.Object(
  {
    name: Type.String(),
    tools: Selection,
    prompts: Selection,
    resources: Selection,
    alias: Type
      .Optional(Type.String())
  },
  { examples: [{ name: 'files', tools: ['read_file'], prompts: 'all', resources: 'all', alias: 'f' }] }
)

export const KeyRecord = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    token: Type.String({ description: 'Masked; plain only in the answer that creates the key' }),
    kind: StringEnum(['system', 'user']),
    owner: Type.Optional(Type.String()),
    createdBy: Type.Optional(Type.String({
      description:
        'Who made it, or gave it more rights last. A system key counts while its maker and its owner are admins'
    })),
    inactive: Type.Optional(Type.String({ description: 'The reason why it does not count now; absent: it counts' })),
    accessType: StringEnum(['all', 'groups', 'servers', 'custom']),
    allowedGroups: Type.Array(Type.String()),
    allowedServers: Type.Array(Type.String()),
    enabled: Type.Boolean(),
    expiresAt: Type.Optional(Type.String({ description: 'From then on the key counts as disabled' })),
    createdAt: Type.Optional(Type.String()),
    lastUsedAt: Type.Optional(Type.String())
  },
  {
    examples: [
      {
        id: '5d0f3c1a-8f5e-4c55-9a53-6f3f0f6f8d21',
        name: 'laptop',
        token: 'thk_3f9a...c01d',
        kind: 'system',
        accessType: 'groups',
        allowedGroups: ['daily'],
        allowedServers: [],
        enabled: true,
        createdAt: '2026-11-20T09:00:00.000Z'
      }
    ]
  }
)
export const NewKey = Closed(Type.Object({
  name: Type.String({ minLength: 1, maxLength: 128 }),
  kind: Type.Optional(StringEnum(['system', 'user'], {
    description: '`user` where neither a kind, an access type nor a list is given: what its owner sees, by MCP'
  })),
  owner: Type.Optional(Type.String()),
  accessType: Type.Optional(StringEnum(['all', 'groups', 'servers', 'custom'], {
    description: 'What a system key opens. `all`: everything, the management API included; it has to be asked for by ' +
      'its name'
  })),
  allowedGroups: Type.Optional(Type.Array(Type.String())),
  allowedServers: Type.Optional(Type.Array(Type.String())),
  enabled: Type.Optional(Type.Boolean()),
  expiresAt: Type.Optional(Type.Union([Type.String(), Type.Null()], {
    description: 'A date and time with its zone (ISO 8601), from which on the key counts as disabled; null: never'
  }))
},
{ examples: [{ name: 'laptop' }, { name: 'agents of the web team', accessType: 'groups', allowedGroups: ['daily'] }] }))
const unchangedOfKey = {
  id: Unchanged,
  token: Unchanged,
  createdBy: Unchanged,
  createdAt: Unchanged,
  lastUsedAt: Unchanged,
  inactive: Unchanged
}
export const KeyUpdate = Closed(Type.Partial(Type.Object({ ...NewKey.properties, ...unchangedOfKey }), {
  examples: [{ enabled: false }],
  description: 'A user may change `name` and `enabled` only; all else may be sent as it was answered'
}))
export const KeyId = Type.Object({ id: Type.String() })
