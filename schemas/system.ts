import { Type, type Static } from '@sinclair/typebox'
import { OAuthServer } from './oauth.ts'
import { NameSeparator, Notifications, Routing } from './settings.ts'
import { StringEnum } from './string-enum.ts'

const Switch = (value: boolean, description?: string) => Type.Optional(Type.Boolean({ default: value, description }))
const Text = (description?: string) => Type.Optional(Type.String({ maxLength: 4_096, description }))

/**
 * The system configuration as the API accepts and returns it. Other stored members are kept; a client may only send
 * them back unchanged.
 */
export const SystemSections = Type.Object(
  {
    routing: Type.Optional(Routing),
    install: Type.Optional(
      Type.Object({
        pythonIndexUrl: Text('Python package index, passed to child processes'),
        npmRegistry: Text('npm registry, passed to child processes'),
        baseUrl: Text('Public address of this gateway')
      })
    ),
    smartRouting: Type.Optional(
      Type.Object({
        enabled: Switch(true),
        dbUrl: Text('Database for embeddings'),
        llmProviderBaseUrl: Text('Address of an embeddings API'),
        llmProviderApiKey: Text(),
        embeddingModel: Text(),
        embeddingDimensions: Type.Optional(Type.Integer({ minimum: 1, maximum: 65_536 })),
        embeddingDimensionsApiPassthrough: Switch(false, 'Send `embeddingDimensions` to every model'),
        progressiveDisclosure: Switch(false),
        staticModel: Switch(true, 'Rank by a small model of words, too'),
        learn: Switch(true, 'Prefer tools that were called after similar queries')
      })
    ),
    toolResultCompression: Type.Optional(
      Type.Object({
        enabled: Switch(false),
        minTokens: Type.Optional(Type.Integer({ default: 2_000, minimum: 1, maximum: 10_000_000 })),
        maxOutputTokens: Type.Optional(Type.Integer({ default: 1_200, minimum: 1, maximum: 10_000_000 })),
        strategy: Type.Optional(StringEnum(['auto', 'json', 'log', 'search', 'diff', 'text'], { default: 'auto' })),
        structuredContent: Switch(false, 'Shorten arrays and strings in `structuredContent`, too')
      })
    ),
    mcpRouter: Type.Optional(Type.Object({ apiKey: Text(), referer: Text(), title: Text(), baseUrl: Text() })),
    nameSeparator: NameSeparator,
    enableSessionRebuild: Switch(false),
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
