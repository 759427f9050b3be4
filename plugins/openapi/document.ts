import type { ListedServer } from './collect.ts'
import type { Json } from './keywords.ts'
import { operationOf, shortHash } from './operation.ts'

/** What a caller may say of a document, and what stands there where it says nothing. */
export interface Head { readonly title: string, readonly description: string, readonly version: string, readonly serverUrl: string }

export interface BodyInput {
  readonly servers: readonly ListedServer[]
  /** Disabled tools too. */
  readonly disabled: boolean
  /** Where the operations of a group are reached, beside the document's own server. */
  readonly groupUrl: string | undefined
  /** The caller used a credential, and needs one for the calls, too. */
  readonly secured: boolean
}

const json = (schema: Json): Json => ({ 'application/json': { schema } })
const failure = (description: string): Json => ({ description, content: json({ $ref: '#/components/schemas/ErrorResponse' }) })
const responses: Json = {
  200: { description: 'The result as the tool gave it. `isError` is true where the tool failed', content: json({ $ref: '#/components/schemas/ToolResponse' }) },
  400: { $ref: '#/components/responses/InvalidArguments' },
  404: { $ref: '#/components/responses/NoSuchTool' },
  502: { $ref: '#/components/responses/ServerFailed' },
  504: { $ref: '#/components/responses/ServerSlow' }
}
const shared: Json = {
  ToolResponse: {
    type: 'object',
    description: 'What a tool answers: the result of an MCP tool call',
    required: ['content'],
    properties: {
      content: { type: 'array', description: 'Blocks of text, images, audio and resources', items: { type: 'object', required: ['type'], properties: { type: { type: 'string' }, text: { type: 'string' } }, additionalProperties: true } },
      structuredContent: { type: 'object', description: 'The same as data, where the tool gives it', additionalProperties: true },
      isError: { type: 'boolean', description: 'The tool failed; `content` says how' }
    },
    additionalProperties: true
  },
  ErrorResponse: {
    type: 'object',
    required: ['success', 'error', 'message'],
    properties: { success: { type: 'boolean', enum: [false] }, error: { type: 'string', description: 'A code that stays the same' }, message: { type: 'string', description: 'What is wrong, in words' } }
  }
}

/** The part of a document that its head does not change: tools as operations. Pure. */
export function foldBody ({ servers, disabled, groupUrl, secured }: BodyInput): Json {
  const paths: Record<string, Json> = {}
  const schemas: Json = { ...shared }
  const ids = new Set<string>()
  for (const { name, tools } of servers) {
    for (const { item, description, enabled } of tools()) {
      const operation = enabled || disabled ? operationOf(name, item) : undefined
      if (!operation) continue
      const text = description ?? operation.description
      paths[operation.path] = {
        ...(groupUrl === undefined ? {} : { servers: [{ url: groupUrl }] }),
        [operation.method]: {
          operationId: unique(`${name}_${item.key}`, `${name}\n${item.key}`, ids),
          summary: operation.summary,
          ...(text === undefined ? {} : { description: text }),
          tags: [name],
          ...operation.input,
          responses
        }
      }
      Object.assign(schemas, operation.components)
    }
  }
  return {
    ...(secured ? { security: [{ bearerKey: [] }, { login: [] }] } : {}),
    tags: servers.map(({ name, description }) => ({ name, ...(description === undefined ? {} : { description }) })),
    paths,
    components: {
      schemas,
      responses: {
        InvalidArguments: failure('The arguments do not fit; the message names them'),
        NoSuchTool: failure('There is no such tool, or the caller may not see it'),
        ServerFailed: failure('The server behind the tool failed'),
        ServerSlow: failure('The server behind the tool did not answer in time')
      },
      ...(secured ? { securitySchemes: { bearerKey: { type: 'http', scheme: 'bearer' }, login: { type: 'apiKey', in: 'header', name: 'x-auth-token' } } } : {})
    }
  }
}

export const headOf = ({ title, description, version, serverUrl }: Head): Json => ({ openapi: '3.0.3', info: { title, description, version }, servers: [{ url: serverUrl }] })

/** The first of several that would have one id keeps it; the others get a suffix that tells them apart, the same every time. */
function unique (id: string, identity: string, taken: Set<string>): string {
  let free = id
  for (let salt = ''; taken.has(free); salt += '.') free = `${id}_${shortHash(`${salt}${identity}`)}`
  taken.add(free)
  return free
}
