import type { ListedServer } from './collect.ts'
import type { JsonObject } from './keywords.ts'
import { shortHash } from './operation.ts'

/** What a caller may say of a document, and what stands there where it says nothing. */
export interface Head { readonly title: string, readonly description: string, readonly version: string, readonly serverUrl: string }

export interface BodyInput {
  readonly servers: readonly ListedServer[]
  /** Disabled tools too. */
  readonly disabled: boolean
  /** Each operation says where a group's operations are reached, beside the document's own server. */
  readonly inGroup: boolean
  /** The caller used a credential, and needs one for the calls, too. */
  readonly secured: boolean
}

const json = (schema: JsonObject): JsonObject => ({ 'application/json': { schema } })
const failure = (description: string): JsonObject => ({ description, content: json({ $ref: '#/components/schemas/ErrorResponse' }) })
/** What every operation answers. */
export const responses: JsonObject = {
  200: {
    description: 'The result as the tool gave it. `isError` is true where the tool failed',
    content: json({ $ref: '#/components/schemas/ToolResponse' })
  },
  400: { $ref: '#/components/responses/InvalidArguments' },
  404: { $ref: '#/components/responses/NoSuchTool' },
  502: { $ref: '#/components/responses/ServerFailed' },
  504: { $ref: '#/components/responses/ServerSlow' }
}
const shared: JsonObject = {
  ToolResponse: {
    type: 'object',
    description: 'What a tool answers: the result of an MCP tool call',
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
      structuredContent: { type: 'object', description: 'The same as data, where the tool gives it', additionalProperties: true },
      isError: { type: 'boolean', description: 'The tool failed; `content` says how' }
    },
    additionalProperties: true
  },
  ErrorResponse: {
    type: 'object',
    required: ['success', 'error', 'message'],
    properties: {
      success: { type: 'boolean', enum: [false] },
      error: { type: 'string', description: 'A code that stays the same' },
      message: { type: 'string', description: 'What is wrong, in words' }
    }
  }
}

/** What a document says beside its head and its tools. Pure. */
export function frameOf ({ servers, secured }: BodyInput): {
  security?: JsonObject[]
  tags: JsonObject[]
  components: { schemas: JsonObject; responses: JsonObject; securitySchemes?: JsonObject }
} {
  return {
    ...(secured ? { security: [{ bearerKey: [] }, { login: [] }] } : {}),
    tags: servers.map(({ name, description }) => ({ name, ...(description === undefined ? {} : { description }) })),
    components: {
      schemas: shared,
      responses: {
        InvalidArguments: failure('The arguments do not fit; the message names them'),
        NoSuchTool: failure('There is no such tool, or the caller may not see it'),
        ServerFailed: failure('The server behind the tool failed'),
        ServerSlow: failure('The server behind the tool did not answer in time')
      },
      ...(secured
        ? {
            securitySchemes: {
              bearerKey: { type: 'http', scheme: 'bearer' },
              login: { type: 'apiKey', in: 'header', name: 'x-auth-token' }
            }
          }
        : {})
    }
  }
}

export const headOf = ({ title, description, version, serverUrl }: Head): JsonObject => ({
  openapi: '3.0.3',
  info: { title, description, version },
  servers: [{ url: serverUrl }]
})

/** The id of a tool's operation. The first of several that would have one keeps it; the others get a suffix that tells them apart, the same every time. */
export function uniqueOperationId (server: string, tool: string, taken: Set<string>): string {
  const id = `${server}_${tool}`
  let free = id
  for (let salt = ''; taken.has(free); salt += '.') free = `${id}_${shortHash(`${salt}${server}\n${tool}`)}`
  taken.add(free)
  return free
}
