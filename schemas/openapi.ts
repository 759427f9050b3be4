import type { TSchema } from '@sinclair/typebox'
import { Failure } from './answers.ts'
import { ServerConfig } from './server.ts'
import { SystemSections } from './system.ts'

/** Creates the static part of the management API's OpenAPI document. The paths are generated from the routes. */
export const apiDocumentBase = (version: string, basePath: string) => ({
  openapi: '3.1.0',
  info: {
    title: 'Tool-Hub management API',
    version,
    description:
      'Log in with `POST /api/auth/login` and send the token in `x-auth-token`, or send a system bearer key. Answers ' +
      'are `{success, data?, message?}`; failures `{success: false, message, code?, errors?}`. The MCP endpoints ' +
      '`/mcp`, `/mcp/{groupOrServer}` and `/{user}/mcp` are for MCP clients, and are not described here.',
    license: { name: 'MIT', identifier: 'MIT' }
  },
  servers: [{ url: basePath === '' ? '/' : basePath }],
  components: {
    securitySchemes: {
      login: {
        type: 'apiKey' as const,
        in: 'header' as const,
        name: 'x-auth-token',
        description: 'The token from POST /api/auth/login'
      },
      bearerKey: {
        type: 'http' as const,
        scheme: 'bearer',
        description: 'A bearer key of kind `system` with access type `all`'
      }
    }
  },
  security: [{ login: [] }, { bearerKey: [] }] as Array<Record<string, string[]>>
})

/** An operation of an OpenAPI document. This type and the next ones declare only the members that are used here. */
interface Operation {
  summary?: string
  operationId?: string
  security?: unknown[]
  parameters?: Array<{ in: string }>
  requestBody?: { required?: boolean, content: Record<string, Media> }
  responses: Record<string, Response>
}
interface Response { description?: string, content?: Record<string, Media> }
interface Media { schema?: Schema, example?: unknown, examples?: unknown }
interface Document {
  paths?: Record<string, Record<string, unknown>>
  components?: { schemas?: Record<string, unknown>; responses?: Record<string, unknown> }
}

interface Schema {
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  anyOf?: Schema[]
  enum?: unknown[]
  examples?: unknown[]
  default?: unknown
  description?: string
  [key: string]: unknown
}

/** Copies a TypeBox schema without its symbol keys, for `components`. */
const toComponent = (schema: TSchema): Schema => JSON.parse(JSON.stringify(schema)) as Schema

/** Composes an example for a schema from the examples within it; undefined if a required part has none. */
function exampleOf ({ examples, enum: choices, properties, required = [], items, anyOf }: Schema): unknown {
  const given = examples?.[0] ?? choices?.[0] ?? (anyOf?.[0] && exampleOf(anyOf[0]))
  if (given !== undefined) return given
  if (items) return [exampleOf(items)].filter((each) => each !== undefined)
  const members = Object.entries(properties ?? {})
    .map(([key, member]): [string, unknown] => [key, exampleOf(member)])
    .filter(([, member]) => member !== undefined)
  return members.length > 0 &&
    required.every((key) => members.some(([name]) => name === key))
    ? Object.fromEntries(members)
    : undefined
}

/** Adds an example to a response, if one can be composed from its schema. */
const withExample = ({ content = {}, ...response }: Response): Response => ({
  ...response,
  content: Object.fromEntries(
    Object.entries(content).map(([type, media]) => [
      type,
      'example' in media || 'examples' in media ? media : { ...media, example: exampleOf(media.schema ?? {}) }
    ])
  )
})

/** Converts a schema for PUT: each member and section also accepts `null`, which restores the default. */
const resettable = (schema: Schema): Schema => ({
  ...schema,
  ...(schema.properties && {
    properties: Object.fromEntries(Object.entries(schema.properties)
      .map(([key, { default: standard, description, ...member }]) => [key, {
        ...(standard !== undefined && { default: standard }),
        ...(description !== undefined && { description }),
        anyOf: [resettable(member), { type: 'null' }]
      }]))
  })
})

/** The descriptions of error responses, by status. */
const failures: Record<string, string> = {
  400: 'The request is invalid; `errors` contains the details',
  401: 'The credential is missing or not accepted',
  403: 'Authenticated, but not allowed; or the gateway is read-only',
  404: 'It does not exist, or is not visible to you',
  409: 'The settings were changed in the meantime: read them again, and repeat the request; or some secrets ' +
    'cannot be decrypted',
  412: 'The record is no longer the version that `If-Match` names: read it again, and repeat the request',
  413: 'Larger than `routing.jsonBodyLimit`',
  415: 'Not JSON',
  429: 'Too many requests; `Retry-After` says when to try again',
  502: 'The upstream failed, or is not connected',
  503: 'The storage is unavailable, or a limit is reached',
  504: 'The upstream took too long',
  507: 'The disk is full'
}

const notModified: Response = { description: 'As the client already has it (`If-None-Match`)' }

/** By path: error statuses that cannot be derived from the method, credentials, parameters and body. */
const otherFailures: Record<string, number[]> = {
  '/api/auth/change-password': [429],
  '/api/mcp-settings/export': [409],
  // For a gateway without a database.
  '/api/activities': [404],
  '/api/activities/stats': [404],
  '/api/activities/filters': [404],
  '/api/activities/cleanup': [404],
  // If the authorization server is disabled.
  '/api/oauth/clients': [404],
  '/api/oauth/consents': [404],
  // If the feature is not configured, its rate limit is reached, or the other service is unavailable.
  '/api/cloud/servers': [400, 429, 502],
  '/api/cloud/servers/{name}': [429, 502],
  '/api/cloud/servers/{name}/tools': [429, 502],
  '/api/registry/servers': [429, 502],
  '/api/registry/servers/{serverName}/versions': [429, 502],
  '/api/registry/servers/{serverName}/versions/{version}': [429, 502]
}

/**
 * Returns the error statuses of an operation: those in `otherFailures`, and those that follow from its method,
 * credentials, parameters and body.
 */
function failuresOf (method: string, path: string, { security, parameters = [], requestBody }: Operation): number[] {
  const isPublic = security?.length === 0
  const runs = requestBody !== undefined && /^\/api\/(tools\/call|mcp)\//.test(path)
  return [
    ...(requestBody ||
      parameters.some((parameter) => parameter.in === 'query' || parameter.in === 'path')
      ? [400]
      : []),
    ...(parameters.some((parameter) => parameter.in === 'header') ? [412] : []),
    ...(method === 'get' ? [] : [413, 415]),
    ...(isPublic ? requestBody ? [401, 403, 429] : [] : [401, 403]),
    ...(parameters.some((parameter) => parameter.in === 'path') ? [404] : []),
    ...(runs ? [429, 502, 504] : method === 'get' ? [] : [409, 507]),
    ...(otherFailures[path] ?? []),
    503
  ]
}

const capitalize = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1)

/**
 * Derives an operationId, for generated clients: `putGroupsByIdServersBatch` from `PUT /api/groups/{id}/servers/batch`.
 */
const nameOf = (method: string, path: string): string =>
  method +
  path
    .replace(/^\/api\//, '/')
    .split('/')
    .map((part) =>
      part.startsWith('{')
        ? `By${capitalize(part.slice(1, -1))}`
        : part
          .split(/[^a-zA-Z0-9]+/)
          .map(capitalize)
          .join('')
    )
    .join('')

/**
 * Describes the body of an upload. It is read as a stream, so the route has no schema for it.
 * @param field the name of the form field that contains the file
 */
const uploadBody = (field: string): NonNullable<Operation['requestBody']> => ({
  required: true,
  content: {
    'multipart/form-data': {
      schema: { type: 'object', required: [field], properties: { [field]: { type: 'string', format: 'binary' } } }
    }
  }
})
const uploads: Readonly<Record<string, Operation['requestBody']>> = {
  '/api/mcpb/upload': uploadBody('mcpbFile'), '/api/skills/upload': uploadBody('skillFile')
}
/** Matches the paths whose GET has no entity tag: it runs a tool, or is a stream. */
const withoutEntityTag = /\/tools\/\{server\}\/\{tool\}$|\/logs\/stream$/
/** The body of a message to the webhook. It is read as bytes, since the signature covers the bytes. */
const eventMessage = { required: true, content: { 'application/json': { schema: { type: 'object' }, example: {} } } }

/** Replaces the schema of each `config` member by a reference to `ServerConfig`. */
const withConfigs = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(withConfigs)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) =>
      key === 'properties' && typeof inner === 'object' && inner !== null && 'config' in inner
        ? [key, { ...(withConfigs(inner) as object), config: { $ref: '#/components/schemas/ServerConfig' } }]
        : [key, withConfigs(inner)]
    )
  )
}

/**
 * Completes the management API's OpenAPI document with what the routes do not declare: operationIds, error responses,
 * and schemas of bodies that the gateway itself validates. Routes without a summary (the MCP endpoints) are removed.
 */
export function completeApiDocument (declared: object): object {
  const document = withConfigs(declared) as Document
  const paths: NonNullable<Document['paths']> = {}
  for (const [path, item] of Object.entries(document.paths ?? {})) {
    for (const [method, operation] of Object.entries(item) as Array<[string, Operation]>) {
      if (operation.summary === undefined) continue
      if (Object.hasOwn(uploads, path)) operation.requestBody = uploads[path]
      if (path === '/webhooks/events/{token}') operation.requestBody = eventMessage
      const described = new Set(Object.keys(operation.responses))
      const isManagement = path.startsWith('/api/')
      // A batch (status 207) stores each entry separately. It can also fail as a whole: `ofBatch` contains the
      // statuses of such a failure that the route does not describe itself.
      const ofBatch = [400, 401, 403, 413, 415, 429, 503, 507].filter((status) => !described.has(String(status)))
      const failed = isManagement && described.size === 1
        ? failuresOf(method, path, operation)
        : described.has('207') ? ofBatch : []
      if (method === 'put' && path === '/api/system-config' && operation.requestBody) {
        operation.requestBody.content['application/json'] = {
          ...operation.requestBody.content['application/json'],
          schema: { $ref: '#/components/schemas/SystemConfig' }
        }
      }
      const answers = Object.entries(operation.responses).map(([status, response]) => [
        status,
        status.startsWith('2') ? withExample(response) : response
      ])
      const responses = {
        ...Object.fromEntries(answers),
        ...(isManagement && method === 'get' && !withoutEntityTag.test(path) && { 304: notModified }),
        ...Object.fromEntries(failed.map((status) => [status, { $ref: `#/components/responses/Failure${status}` }]))
      }
      paths[path] = { ...paths[path], [method]: { operationId: nameOf(method, path), ...operation, responses } }
    }
  }
  return {
    ...document,
    paths,
    components: {
      ...document.components,
      schemas: {
        ...document.components?.schemas,
        Failure: toComponent(Failure),
        ServerConfig: toComponent(ServerConfig),
        SystemConfig: resettable(toComponent(SystemSections))
      },
      responses: {
        ...document.components?.responses,
        ...Object.fromEntries(
          Object.entries(failures).map(([status, description]) => [
            `Failure${status}`,
            { description, content: { 'application/json': { schema: { $ref: '#/components/schemas/Failure' } } } }
          ])
        )
      }
    }
  }
}
