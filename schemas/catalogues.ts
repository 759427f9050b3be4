import { Type, type Static } from '@sinclair/typebox'
import { RegistryMeta, ServerJson } from './server-json.ts'

const Config = Type.Object({}, { additionalProperties: true })

/** Writes a variable in the notation of configs. */
const placeholder = (name: string): string => `\${${name}}`

/** A value that a user must fill in. The config contains it as `${key}`. */
export const RequiredInput = Type.Object({
  key: Type.String({
    description: `The config contains it as ${placeholder('key')}: replace it, or set this variable in the environment`
  }),
  title: Type.Optional(Type.String({ description: 'The name of the variable, header or argument' })),
  description: Type.Optional(Type.String()),
  sensitive: Type.Boolean(),
  format: Type.Optional(Type.String()),
  placeholder: Type.Optional(Type.String()),
  choices: Type.Optional(Type.Array(Type.String()))
})
export type RequiredInput = Static<typeof RequiredInput>

/** An optional input, which the config does not contain. */
export const OptionalInput = Type.Object({
  title: Type.String(),
  place: Type.String({ description: '`env`, `header`, `argument` or `url`' }),
  description: Type.Optional(Type.String()),
  sensitive: Type.Boolean()
})
export type OptionalInput = Static<typeof OptionalInput>

const Installation = Type.Object({
  type: Type.String({ description: '`npm`, `uvx`, `docker` or `http`' }),
  command: Type.Optional(Type.String()),
  args: Type.Optional(Type.Array(Type.String())),
  env: Type.Optional(Type.Record(Type.String(), Type.String())),
  url: Type.Optional(Type.String()),
  headers: Type.Optional(Type.Record(Type.String(), Type.String()))
})
export type Installation = Static<typeof Installation>

/** A server in the market file, which is part of the package. */
export const MarketEntry = Type.Object({
  name: Type.String(),
  display_name: Type.String(),
  description: Type.String(),
  repository: Type.Object({ type: Type.String(), url: Type.String() }),
  homepage: Type.String(),
  author: Type.Object({ name: Type.String() }),
  license: Type.String(),
  categories: Type.Array(Type.String()),
  tags: Type.Array(Type.String()),
  examples: Type.Array(
    Type.Object({ title: Type.String(), description: Type.String(), prompt: Type.Optional(Type.String()) })
  ),
  installations: Type.Record(Type.String(), Installation),
  arguments: Type.Record(
    Type.String(),
    Type.Object({
      description: Type.String(),
      required: Type.Boolean(),
      example: Type.String(),
      sensitive: Type.Optional(Type.Boolean())
    })
  ),
  tools: Type.Array(Type.Object({ name: Type.String(), description: Type.String() })),
  is_official: Type.Boolean()
})
export type MarketEntry = Static<typeof MarketEntry>

export const MarketFile = Type.Object({
  /** The last day on which `npm run market:check` found every npm package; null if it has never found all of them. */
  checked: Type.Union([Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}$' }), Type.Null()]),
  /** The day on which each npm package was last found. */
  found: Type.Record(Type.String(), Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}$' })),
  servers: Type.Array(MarketEntry)
})
export type MarketFile = Static<typeof MarketFile>

export const MarketServer = Type.Object({
  ...MarketEntry.properties,
  config: Config,
  required: Type.Array(
    RequiredInput
  )
}, {
  examples: [
    {
      name: 'fetch',
      display_name: 'Fetch',
      description: 'Reads web pages as Markdown',
      repository: { type: 'git', url: 'https://github.com/modelcontextprotocol/servers' },
      homepage: 'https://github.com/modelcontextprotocol/servers/tree/main/src/fetch',
      author: { name: 'Model Context Protocol' },
      license: 'MIT',
      categories: ['Web'],
      tags: ['http'],
      examples: [{ title: 'Read a page', description: 'Summarize https://example.com' }],
      installations: { uvx: { type: 'uvx', command: 'uvx', args: ['mcp-server-fetch'] } },
      arguments: {},
      tools: [],
      is_official: true,
      config: { type: 'stdio', command: 'uvx', args: ['mcp-server-fetch'] },
      required: []
    }
  ]
})
export type MarketServer = Static<typeof MarketServer>

export const CloudServer = Type.Object(
  {
    name: Type.String(),
    title: Type.String(),
    description: Type.String(),
    author_name: Type.String(),
    content: Type.String(),
    server_key: Type.String(),
    config_name: Type.String(),
    created_at: Type.String(),
    updated_at: Type.String(),
    config: Type.Optional(Config),
    required: Type.Array(RequiredInput),
    reason: Type.Optional(Type.String({ description: 'The reason why there is no config' }))
  },
  {
    examples: [
      {
        name: 'weather',
        title: 'Weather',
        description: 'Forecasts for every place',
        author_name: 'ada',
        content: '',
        server_key: 'weather',
        config_name: 'weather',
        created_at: '2026-01-01T00:00:00Z',
        updated_at: '2026-01-01T00:00:00Z',
        config: {
          type: 'streamable-http',
          url: 'https://router.example.com/mcp/weather',
          headers: { Authorization: `Bearer ${placeholder('MCPROUTER_API_KEY')}` }
        },
        required: [{ key: 'MCPROUTER_API_KEY', sensitive: true }]
      }
    ]
  }
)
export type CloudServer = Static<typeof CloudServer>

export const CloudTool = Type.Object({
  name: Type.String(),
  description: Type.String(),
  inputSchema: Type.Object({}, { additionalProperties: true })
}, { examples: [{ name: 'forecast', description: 'The weather of a place', inputSchema: { type: 'object' } }] })
export type CloudTool = Static<typeof CloudTool>

/** A package or remote of a registry entry, as a body for `POST /servers`; or the reason why it cannot be converted. */
export const ConvertedPackage = Type.Object({
  from: Type.String({
    description: '`npm`, `pypi`, `oci`, another type of package, `remote`, or `entry` for the entry as a whole'
  }),
  identifier: Type.Optional(Type.String({ description: 'The package, or the URL of the remote' })),
  name: Type.Optional(Type.String()),
  config: Type.Optional(Config),
  required: Type.Optional(Type.Array(RequiredInput)),
  optional: Type.Optional(Type.Array(OptionalInput)),
  reason: Type.Optional(Type.String({ description: 'The reason why there is no config' }))
})
export type ConvertedPackage = Static<typeof ConvertedPackage>

const weather = {
  server: { name: 'com.example/weather', description: 'Forecasts for every place', version: '1.0.2' },
  _meta: { 'io.modelcontextprotocol.registry/official': { status: 'active', isLatest: true } },
  configs: [
    {
      from: 'npm',
      identifier: '@example/weather',
      name: 'weather',
      config: {
        type: 'stdio',
        command: 'npx',
        args: ['-y', '@example/weather@1.0.2'],
        env: { API_KEY: placeholder('INPUT_WEATHER_API_KEY') }
      },
      required: [{ key: 'INPUT_WEATHER_API_KEY', title: 'API_KEY', sensitive: true }],
      optional: []
    }
  ]
}

export const RegistryEntry = Type.Object(
  { server: Type.Partial(ServerJson), _meta: RegistryMeta, configs: Type.Array(ConvertedPackage) },
  { examples: [weather] }
)
export type RegistryEntry = Static<typeof RegistryEntry>

export const RegistryPage = Type.Object({
  servers: Type.Array(RegistryEntry),
  metadata: Type.Object({ count: Type.Integer(), nextCursor: Type.Optional(Type.String()) })
}, { examples: [{ servers: [weather], metadata: { count: 1 } }] })
export type RegistryPage = Static<typeof RegistryPage>

export const RegistryQuery = Type.Object({
  search: Type.Optional(Type.String({ maxLength: 200, description: 'Part of the name' })),
  cursor: Type.Optional(Type.String({ maxLength: 512, description: '`metadata.nextCursor` of the previous page' })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 30, description: 'Max entries of the page' })),
  version: Type.Optional(Type.String({ maxLength: 255, description: '`latest`, or an exact version' })),
  updated_since: Type.Optional(Type.String({ maxLength: 64, description: 'RFC 3339' })),
  include_deleted: Type.Optional(Type.Boolean())
})
export type RegistryQuery = Static<typeof RegistryQuery>
