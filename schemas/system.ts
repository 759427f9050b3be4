import { Type, type Static } from '@sinclair/typebox'
import { OAuthServer } from './oauth.ts'
import { NameSeparator, Notifications, Routing } from './settings.ts'
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
        enabled: Switch(true, 'Smart routing', 'Off: the addresses with $smart answer 404'),
        dbUrl: Text('Database for embeddings'),
        llmProviderBaseUrl: Text('Embeddings API', 'Its address before `/embeddings`. Without it nothing is sent'),
        llmProviderApiKey: Text('Embeddings API key'),
        embeddingModel: Text('Embedding model'),
        embeddingDimensions: Type.Optional(Type.Integer({
          minimum: 1, maximum: 65_536, title: 'Embedding dimensions', description: 'Sent to models that take them'
        })),
        embeddingDimensionsApiPassthrough:
          Switch(false, 'Dimensions for every model', 'Send `embeddingDimensions` to every model'),
        progressiveDisclosure:
          Switch(false, 'Schemas on demand', 'Found tools come without their schemas; `describe_tool` shows one'),
        staticModel: Switch(true, 'Word model', 'Also rank by a small built-in model of the meanings of words'),
        learn: Switch(true, 'Learn from calls', 'Prefer tools that were called after similar queries')
      })
    ),
    toolResultCompression: Type.Optional(
      Type.Object({
        enabled: Switch(false, 'Compression of results'),
        minTokens: Tokens(2_000, 'Shorten results from', 'Tokens; shorter results stay as they are'),
        maxOutputTokens: Tokens(1_200, 'Shorten results to', 'Tokens'),
        strategy: Type.Optional(StringEnum(['auto', 'json', 'log', 'search', 'diff', 'text'], {
          default: 'auto', title: 'Strategy', description: 'What results are taken for; `auto` finds out'
        })),
        structuredContent:
          Switch(false, 'Structured results', 'Shorten arrays and strings in `structuredContent` too')
      })
    ),
    mcpRouter: Type.Optional(
      Type.Object({
        apiKey: Text('Catalogue API key'),
        referer: Text('Referer', 'Header `HTTP-Referer` of its requests'),
        title: Text('Title', 'Header `X-Title` of its requests'),
        baseUrl: Text('Address of the catalogue')
      })
    ),
    nameSeparator: NameSeparator,
    enableSessionRebuild: Switch(
      false, 'Rebuild lost sessions', 'On: a session that the gateway no longer knows is created again under its id'
    ),
    oauthServer: Type.Optional(OAuthServer),
    notifications: Type.Optional(Notifications)
  },
  {
    examples: [
      { routing: { jsonBodyLimit: '5mb' }, install: { baseUrl: 'https://hub.example.com' } },
      { nameSeparator: '_', toolResultCompression: { enabled: true, strategy: 'auto' } }
    ]
  }
)
export type SystemSections = Static<typeof SystemSections>
