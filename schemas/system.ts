import { Type, type Static } from '@sinclair/typebox'
import { AuthorizationServerConfig } from './oauth.ts'
import { NameSeparator, NotificationSettings, Routing } from './settings.ts'
import { StringEnum } from './string-enum.ts'

const Switch = (value: boolean, title: string, description?: string) =>
  Type.Optional(Type.Boolean({ default: value, title, description }))
const Text = (title: string, description?: string) =>
  Type.Optional(Type.String({ maxLength: 4_096, title, description }))
const Tokens = (value: number, title: string, description: string) =>
  Type.Optional(Type.Integer({ default: value, minimum: 1, maximum: 10_000_000, title, description }))

/**
 * The system configuration as the API accepts and returns it. Other stored members are kept; a client may only send
 * them back unchanged.
 */
export const SystemSections = Type.Object(
  {
    routing: Type.Optional(Routing),
    install: Type.Optional(
      Type.Object({
        pythonIndexUrl: Text('Python package index', 'Passed to child processes'),
        npmRegistry: Text('npm registry', 'Passed to child processes'),
        baseUrl: Text('Public address', 'The address of this gateway, as clients reach it')
      })
    ),
    smartRouting: Type.Optional(
      Type.Object({
        enabled: Switch(true, 'Smart routing', 'Off: addresses with $smart return 404'),
        dbUrl: Text('Database for embeddings'),
        llmProviderBaseUrl: Text('Embeddings API', 'The address before `/embeddings`. Without it nothing is sent'),
        llmProviderApiKey: Text('API key for embeddings'),
        embeddingModel: Text('Embedding model'),
        embeddingDimensions: Type.Optional(Type.Integer({
          minimum: 1, maximum: 65_536, title: 'Embedding dimensions', description: 'Sent to models that accept them'
        })),
        embeddingDimensionsApiPassthrough:
          Switch(false, 'Dimensions for every model', 'Send `embeddingDimensions` also if a model may not accept it'),
        progressiveDisclosure:
          Switch(false, 'Schemas on demand', 'Search results contain no schemas; `describe_tool` returns them'),
        staticModel: Switch(true, 'Built-in word model', 'Also rank by a small model of word meanings'),
        learn: Switch(true, 'Learn from calls', 'Prefer tools that were called after similar queries')
      })
    ),
    toolResultCompression: Type.Optional(
      Type.Object({
        enabled: Switch(false, 'Compress results'),
        minTokens: Tokens(2_000, 'Shorten results from', 'Tokens; shorter results stay unchanged'),
        maxOutputTokens: Tokens(1_200, 'Shorten results to', 'Tokens'),
        strategy: Type.Optional(StringEnum(['auto', 'json', 'log', 'search', 'diff', 'text'], {
          default: 'auto', title: 'Strategy', description: 'The format that results are treated as; `auto` detects it'
        })),
        structuredContent:
          Switch(false, 'Structured results', 'Shorten arrays and strings in `structuredContent` too')
      })
    ),
    mcpRouter: Type.Optional(
      Type.Object({
        apiKey: Text('API key of the cloud catalogue'),
        referer: Text('Referer', 'Header `HTTP-Referer` of requests to the catalogue'),
        title: Text('Title', 'Header `X-Title` of requests to the catalogue'),
        baseUrl: Text('Address of the cloud catalogue')
      })
    ),
    nameSeparator: NameSeparator,
    enableSessionRebuild: Switch(
      false, 'Rebuild lost sessions', 'On: an unknown session is recreated under its id, for example after a restart'
    ),
    oauthServer: Type.Optional(AuthorizationServerConfig),
    notifications: Type.Optional(NotificationSettings)
  },
  {
    examples: [
      { routing: { jsonBodyLimit: '5mb' }, install: { baseUrl: 'https://hub.example.com' } },
      { nameSeparator: '_', toolResultCompression: { enabled: true, strategy: 'auto' } }
    ]
  }
)
export type SystemSections = Static<typeof SystemSections>
