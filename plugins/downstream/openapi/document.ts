import { withMembers } from '../../../protocol/json.ts'
import { downstreamLimits } from '../limits.ts'
import type { JsonObject } from './keywords.ts'
import { toOperation } from './operation.ts'

/**
 * A tool to describe. `text`: the tool as its server lists it; `description`: the admin's replacement for the
 * description in the text, if any.
 */
interface DocumentTool {
  readonly key: string
  readonly text: string
  readonly description: string | undefined
  readonly operationId: string
}

export type DocumentFormat = 'json' | 'yaml'

/** The content of a document. Plain data, since it is sent to a worker thread. */
export interface DocumentInput {
  readonly format: DocumentFormat
  readonly title: string
  /** The description in the Info Object. */
  readonly about: string
  readonly version: string
  readonly serverUrl: string
  readonly servers: ReadonlyArray<{
    readonly name: string, readonly description: string | undefined, readonly tools: readonly DocumentTool[]
  }>
  /** The `servers` member of each operation, for the document of a group. */
  readonly operationUrl?: string
  /** Whether the caller is authenticated. For other callers, the document says that credentials are optional. */
  readonly isAuthenticated: boolean
  /** Whether large tools are described as taking any object. */
  readonly isBrief: boolean
}

const json = (schema: JsonObject): JsonObject => ({ 'application/json': { schema } })
const failure = (description: string): JsonObject => ({
  description, content: json({ $ref: '#/components/schemas/ErrorResponse' })
})
const operationResponses: JsonObject = {
  200: {
    description: 'The unchanged result of the tool. `isError` is true if the tool failed',
    content: json({ $ref: '#/components/schemas/ToolResponse' })
  },
  400: { $ref: '#/components/responses/InvalidArguments' },
  404: { $ref: '#/components/responses/NoSuchTool' },
  502: { $ref: '#/components/responses/ServerFailed' },
  504: { $ref: '#/components/responses/ServerSlow' }
}
const sharedSchemas: JsonObject = {
  ToolResponse: {
    type: 'object',
    description: 'The result of an MCP tool call',
    required: ['content'],
    properties: {
      content: {
        type: 'array',
        description: 'Blocks of text, images, audio and resources',
        items: {
          type: 'object',
          required: ['type'],
          properties: { type: { type: 'string' }, text: { type: 'string' } },
          additionalProperties: true
        }
      },
      structuredContent: { description: 'The structured result, if the tool returns one: any JSON value' },
      isError: { type: 'boolean', description: 'Whether the tool failed; `content` then contains the reason' }
    },
    additionalProperties: true
  },
  ErrorResponse: {
    type: 'object',
    required: ['success', 'error', 'message'],
    properties: {
      success: { type: 'boolean', enum: [false] },
      error: { type: 'string', description: 'A stable error code' },
      message: { type: 'string', description: 'A description of the problem' }
    }
  }
}

const anyObject = '{"type":"object","additionalProperties":{"description":"The arguments of the tool"}}'

/** Creates the OpenAPI 3.0.3 document of tools. This is a pure function, which takes long for large schemas. */
export function makeDocument (
  { title, about, version, serverUrl, servers, operationUrl, isAuthenticated, isBrief }: DocumentInput
): JsonObject {
  const paths: JsonObject = {}
  const schemas: JsonObject = { ...sharedSchemas }
  for (const { name, tools } of servers) {
    for (const { key, text, description, operationId } of tools) {
      const isCut = isBrief && text.length >= downstreamLimits.documents.large
      const shown = isCut ? withMembers(text, { inputSchema: anyObject }) : text
      const operation = toOperation(name, { key, text: shown })
      if (!operation) continue
      const { path, method, summary, input, components } = operation
      const own = { operationId, summary, description: description ?? operation.description, tags: [name], ...input }
      paths[path] = {
        ...(operationUrl !== undefined && { servers: [{ url: operationUrl }] }),
        [method]: { ...own, responses: operationResponses }
      }
      for (const [component, schema] of components) schemas[component] = schema
    }
  }
  return {
    openapi: '3.0.3',
    info: { title, description: about, version },
    servers: [{ url: serverUrl }],
    security: isAuthenticated ? [{ bearerAuth: [] }, { login: [] }] : [{}, { bearerAuth: [] }],
    tags: servers.map(({ name, description }) => ({ name, description })),
    paths,
    components: {
      schemas,
      responses: {
        InvalidArguments: failure('The arguments do not match the input schema; the message names them'),
        NoSuchTool: failure('There is no such tool, or the caller may not see it'),
        ServerFailed: failure('The server behind the tool failed'),
        ServerSlow: failure('The server behind the tool did not answer in time')
      },
      securitySchemes: {
        bearerAuth: { type: 'http', scheme: 'bearer', description: 'A bearer key, or an access token' },
        ...(isAuthenticated && {
          login: { type: 'apiKey', in: 'header', name: 'x-auth-token', description: 'A login token' }
        })
      }
    }
  }
}
