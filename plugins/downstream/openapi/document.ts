import type { Item } from '../../../protocol/lists.ts'
import { exposedName, alternativeName } from '../../settings/index.ts'
import type { ListedServer } from './collect.ts'
import type { JsonObject } from './keywords.ts'
import type { Operation } from './operation.ts'

/** The parts of a document that a caller may choose. */
interface Head {
  readonly title: string, readonly description: string, readonly version: string, readonly serverUrl: string
}

export interface BodyInput {
  readonly servers: readonly ListedServer[]
  /** Whether disabled tools are included. */
  readonly includesDisabled: boolean
  /** Whether the document is that of a group: then each operation states the URL of the group's server. */
  readonly isForGroup: boolean
  /**
   * Whether the caller authenticated, and so may need the credentials for the calls as well. Otherwise they are
   * optional: they add tools.
   */
  readonly isAuthenticated: boolean
  /** The operations of large tools; a missing one is described as taking any object. */
  readonly large?: ReadonlyMap<Item, Operation>
}

const json = (schema: JsonObject): JsonObject => ({ 'application/json': { schema } })
const failure = (description: string): JsonObject => ({
  description, content: json({ $ref: '#/components/schemas/ErrorResponse' })
})
/** The Responses Object of every operation. */
export const operationResponses: JsonObject = {
  200: {
    description: 'The result as the tool gave it. `isError` is true where the tool failed',
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
      structuredContent: { description: 'The result as data, where the tool gives it: any JSON value' },
      isError: { type: 'boolean', description: 'The tool failed; `content` says how' }
    },
    additionalProperties: true
  },
  ErrorResponse: {
    type: 'object',
    required: ['success', 'error', 'message'],
    properties: {
      success: { type: 'boolean', enum: [false] },
      error: { type: 'string', description: 'A stable error code' },
      message: { type: 'string', description: 'The problem in words' }
    }
  }
}

/** The members of a document other than its head and its operations. Pure. */
export function documentFrame ({ servers, isAuthenticated }: BodyInput): {
  security: JsonObject[]
  tags: JsonObject[]
  components: { schemas: JsonObject; responses: JsonObject; securitySchemes: JsonObject }
} {
  return {
    security: isAuthenticated ? [{ bearerAuth: [] }, { login: [] }] : [{}, { bearerAuth: [] }],
    tags: servers.map(({ name, description }) => ({ name, ...(description === undefined ? {} : { description }) })),
    components: {
      schemas: sharedSchemas,
      responses: {
        InvalidArguments: failure('The arguments do not fit; the message names them'),
        NoSuchTool: failure('There is no such tool, or the caller may not see it'),
        ServerFailed: failure('The server behind the tool failed'),
        ServerSlow: failure('The server behind the tool did not answer in time')
      },
      securitySchemes: {
        bearerAuth: { type: 'http', scheme: 'bearer', description: 'A bearer key, or an access token' },
        ...(isAuthenticated
          ? { login: { type: 'apiKey', in: 'header', name: 'x-auth-token', description: 'The token of a login' } }
          : {})
      }
    }
  }
}

/** The first members of a document. */
export const documentHead = ({ title, description, version, serverUrl }: Head): JsonObject => ({
  openapi: '3.0.3',
  info: { title, description, version },
  servers: [{ url: serverUrl }]
})

/**
 * The operationId of a tool: `<server>_<tool>` in the characters that model APIs accept, with a hash if another tool
 * has that id.
 * @param isPlain false if a tool outside the document has the plain id
 * @param taken the ids so far; the new one is added
 */
export function uniqueOperationId (server: string, tool: string, isPlain: boolean, taken: Set<string>): string {
  const base = exposedName(server, '_', tool)
  let id = isPlain ? base : alternativeName(base, `${server}\n${tool}`)
  for (let salt = ''; taken.has(id); salt += '.') id = alternativeName(base, `${salt}${server}\n${tool}`)
  taken.add(id)
  return id
}
