import { Type } from '@sinclair/typebox'
import { DefinitionWarningSchema } from './definitions-api.ts'
import { StringEnum } from './string-enum.ts'

const Item = Type.Object(
  { enabled: Type.Boolean(), overridden: Type.Optional(Type.Boolean()) },
  {
    additionalProperties: true,
    description: 'The item as the upstream listed it',
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
 * Items are sent as the JSON text of the upstream, so routes that return servers use `serializeRecords` of routes/api.
 */
const Items = Type.Unsafe<object>(Type.Array(Item))

const EraOfServer =
  Type.Optional(StringEnum(['legacy', 'modern'], { description: '`modern`: since 2026-07-28, without sessions' }))

export const ServerRecord = Type.Object(
  {
    name: Type.String(),
    enabled: Type.Boolean(),
    status: StringEnum(['connecting', 'connected', 'disconnected', 'oauth_required', 'disabled']),
    error: Type.Union([Type.String(), Type.Null()], {
      description: 'The reason why it is not connected, and what to do'
    }),
    warnings: Type.Optional(Type.Array(Type.Union([Type.String(), DefinitionWarningSchema]), {
      description: 'Problems that do not prevent the server from working, as sentences, and warnings about its ' +
        'definitions'
    })),
    tools: Items,
    prompts: Items,
    resources: Items,
    skills: Items,
    config: Type.Object({}, { additionalProperties: true, description: 'Secrets are masked' }),
    createdAt: Type.Optional(Type.String()),
    connectedAt: Type.Optional(Type.String()),
    protocolVersion: Type.Optional(Type.String({
      description: 'The MCP revision of the connection, while the server is connected'
    })),
    era: EraOfServer,
    oauth: Type.Optional(
      Type.Object({ authorizationUrl: Type.String() }, {
        description: 'The address to open to log in to the server; valid for an hour'
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
        skills: [],
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

/**
 * The config of a server. The schema does not describe its members, since the gateway validates configs itself, with
 * clearer messages.
 */
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
export const EnabledUpdate = Type.Object({ enabled: Type.Boolean() }, { examples: [{ enabled: false }] })
export const ServerParams = Type.Object({ name: Type.String() })

/** Creates the schema of an object with servers by name, the format of other programs. */
const ByName = (description: string) =>
  Type.Object({}, { additionalProperties: true, maxProperties: 1_000, description })
/**
 * A batch of new servers. Each entry is validated separately: an invalid one is reported in the results, and the others
 * are stored.
 */
export const NewServers = Type.Object(
  {
    servers: Type.Optional(Type.Union([
      Type.Array(Type.Unknown(), { maxItems: 1_000, description: 'Entries in the format of POST /servers' }),
      ByName('In the format of VS Code')
    ])),
    mcpServers: Type.Optional(ByName('In the format of Claude, Cursor, Cline, Windsurf, mcp-hub and MCPHub'))
  },
  {
    additionalProperties: true,
    description: 'A list of servers, or the unchanged configuration file of an MCP client',
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
    name: Type.Optional(Type.String({
      description: 'The name of a stored server whose secrets replace the masks in `config`'
    })),
    config: Config
  },
  { examples: [{ config: { url: 'https://mcp.example.com/mcp' } }] }
)
export const ServerTestResult = Type.Object(
  {
    connected: Type.Boolean(),
    status: StringEnum(['connected', 'disconnected', 'oauth_required']),
    error: Type.Union([Type.String(), Type.Null()], { description: 'The reason why it does not connect' }),
    warnings: Type.Array(Type.String()),
    protocolVersion: Type.Optional(Type.String({ description: 'The MCP revision of the connection' })),
    era: EraOfServer,
    serverInfo: Type.Optional(Type.Unknown()),
    tools: Items,
    prompts: Items,
    resources: Items,
    skills: Items,
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
        skills: [],
        duration: 240
      }
    ]
  }
)
const BatchData = Type.Object({
  results: Type.Array(Type.Object({
    name: Type.String(),
    success: Type.Boolean(),
    unchanged: Type.Optional(Type.Literal(true, { description: 'The same server was already stored' })),
    message: Type.Optional(Type.String()),
    warnings: Type.Optional(Type.Array(Type.String()))
  })),
  successCount: Type.Integer(),
  failureCount: Type.Integer()
})
export const BatchWriteResult = Type.Object({
  success: Type.Literal(true),
  data: BatchData,
  message: Type.Optional(Type.String()),
  warnings: Type.Optional(Type.Array(Type.String(), {
    description: 'Warnings about members of the body that are not servers'
  }))
})
export const BatchWriteFailure = Type.Object({
  success: Type.Literal(false),
  data: Type.Optional(BatchData),
  message: Type.String(),
  code: Type.Optional(Type.String()),
  errors: Type.Optional(Type.Array(Type.Unknown()))
})

/** The values that a server requires of each user, and whether the caller has provided them. */
export const MyVariables = Type.Array(
  Type.Object({
    name: Type.String(),
    title: Type.Optional(Type.String()),
    description: Type.Optional(Type.String()),
    secret: Type.Boolean(),
    required: Type.Boolean(),
    isSet: Type.Boolean({ description: 'Whether you have set it; values are never returned' })
  }),
  { examples: [[{ name: 'TOKEN', title: 'Your API token', secret: true, required: true, isSet: false }]] }
)
export const MyValues = Type.Object(
  {
    values: Type.Record(Type.String(), Type.Union([Type.String(), Type.Null()]), {
      maxProperties: 100,
      description: 'Values by the names of the variables. Absent ones stay unchanged; null removes one'
    })
  },
  { additionalProperties: false, examples: [{ values: { TOKEN: 'a token of yours' } }] }
)
export const VariableNamesByUser = Type.Array(
  Type.Object({
    username: Type.String(),
    names: Type.Array(Type.String()),
    updatedAt: Type.String({ description: 'ISO 8601' })
  }),
  { examples: [[{ username: 'alice', names: ['TOKEN'], updatedAt: '2026-11-20T09:00:00.000Z' }]] }
)

export const ItemRecord = Item
export const NewDescription = Type.Object(
  { description: Type.String({ maxLength: 16 * 1024 }) },
  { examples: [{ description: 'Reads a file of the project' }] }
)
