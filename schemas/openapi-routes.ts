import { Type } from '@sinclair/typebox'

/** The error response of an open route: a route on which credentials are optional. */
export const OpenRouteError = Type.Object({
  success: Type.Literal(false),
  error: Type.String({ description: 'A stable error code' }),
  message: Type.String({ description: 'The problem, and how to solve it' })
})

export const DocumentQuery = Type.Object({
  title: Type.Optional(Type.String({ description: "The document's title" })),
  description: Type.Optional(Type.String({ description: "The document's description" })),
  version: Type.Optional(Type.String({ description: "The document's version" })),
  serverUrl: Type.Optional(
    Type.String({
      description: 'Base address of the operations: an absolute http or https address, up to 2,048 bytes'
    })
  ),
  includeDisabled: Type.Optional(Type.Boolean({
    description: 'Whether to include disabled tools. Calls of them are still answered with 404'
  })),
  servers: Type.Optional(Type.String({ description: 'The servers to include, comma-separated. Default: all' }))
})
/** The query for the document of one group or server: it has no `servers`. */
export const GroupOrServerDocumentQuery = Type.Omit(DocumentQuery, ['servers'])
export const GroupOrServerParams = Type.Object(
  { name: Type.String({ description: 'A group by id or name, otherwise a server' }) }
)

export const OpenApiServerNames = Type.Object(
  { success: Type.Literal(true), data: Type.Array(Type.String()) },
  { examples: [{ success: true, data: ['issues', 'files'] }] }
)

export const ToolStats = Type.Object(
  {
    success: Type.Literal(true),
    data: Type.Object({
      totalServers: Type.Integer(),
      totalTools: Type.Integer(),
      serverBreakdown: Type
        .Array(Type.Object({ name: Type.String(), toolCount: Type.Integer(), status: Type.String() }))
    })
  },
  {
    examples: [
      {
        success: true,
        data: {
          totalServers: 1, totalTools: 12, serverBreakdown: [{ name: 'issues', toolCount: 12, status: 'connected' }]
        }
      }
    ]
  }
)

export const ToolParams = Type.Object({ server: Type.String(), tool: Type.String() })
export const GroupOrServerToolParams = Type.Object({
  name: Type.String({ description: 'A group by id or name, otherwise the server' }),
  server: Type.String(),
  tool: Type.String()
})

/** Creates the schema of a response that the handler sends as JSON text, bypassing the serializer. */
const TextResponse = (description: string, example: object) =>
  Type.Unsafe<string>(Type.Object({}, { additionalProperties: true, description, examples: [example] }))
export const ToolResult =
  TextResponse('The unchanged MCP result of the tool: `content`, `structuredContent?`, `isError?`', {
    content: [{ type: 'text', text: 'Hello' }]
  })
/** The result of a tool call in the management API, with the tool's name and arguments. */
export const ToolCallResult = Type.Object({
  toolName: Type.String(),
  arguments: Type.Object({}, { additionalProperties: true, description: 'The arguments of the call, unchanged' }),
  content: Type.Optional(Type.Unknown({
    description: 'From the tool\'s result, unchanged: blocks of text, images, audio and resources'
  })),
  structuredContent: Type.Optional(Type.Unknown({ description: 'From the tool\'s result, unchanged' })),
  isError: Type.Optional(Type.Unknown({ description: 'From the tool\'s result, unchanged: true if the tool failed' }))
}, { additionalProperties: true })
export const OpenApiDocument = TextResponse('An OpenAPI 3.0.3 document', {
  openapi: '3.0.3',
  info: { title: 'Tool-Hub', version: '1.0.0' },
  paths: {}
})
