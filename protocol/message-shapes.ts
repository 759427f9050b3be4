// The shapes of MCP's messages, in all revisions: which members must not be null, must be objects, or are required.
import { listKinds, type ListKind } from './lists.ts'
import { mend } from './mending.ts'
import type { Shape } from './shapes/shape.ts'
import { metaKeys } from './modern/envelope.ts'
import { truncate } from './text.ts'
import {
  anyValue, anyObject, object, list, anyMembers, withFallback, meta, string, number, stringMembers, requiredText, flag,
  coercedList
} from './shapes/parts.ts'
import { jsonSchemaShape, elicitationFormShape } from './shapes/schema.ts'
import { resourceContentsShape, contentBlocks, samplingMessage, promptMessages } from './shapes/content.ts'

const annotations = object({ audience: list(anyValue), ...anyMembers('priority', 'lastModified') })
const icons = list(object({ ...anyMembers('src', 'mimeType', 'theme'), sizes: list(anyValue) }, { needs: 'src' }))
const descriptiveMembers = { ...anyMembers('title', 'description'), icons, ...meta }
const resource =
  { uri: anyValue, name: anyValue, ...descriptiveMembers, ...anyMembers('mimeType', 'size'), annotations }
const toolAnnotations = object(
  anyMembers('title', 'readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint')
)
const tool = object({
  name: anyValue,
  ...descriptiveMembers,
  inputSchema: withFallback(jsonSchemaShape, '{"type":"object"}'),
  outputSchema: jsonSchemaShape,
  annotations: toolAnnotations,
  execution: object(anyMembers('taskSupport'))
})
const promptArgument = object(anyMembers('name', 'title', 'description', 'required'), { needs: 'name' })

export const itemShapes: Readonly<Record<ListKind, Shape>> = {
  tools: tool,
  prompts: object({ name: anyValue, ...descriptiveMembers, arguments: list(promptArgument) }),
  resources: object(resource),
  resourceTemplates: object({ ...resource, uriTemplate: anyValue }),
  skills: object({ uri: anyValue, frontmatter: anyObject, resources: anyValue, ...meta }),
  events: object({
    name: anyValue,
    ...descriptiveMembers,
    delivery: list(anyValue),
    inputSchema: jsonSchemaShape,
    payloadSchema: jsonSchemaShape
  })
}

/** The members that any result may have. */
const commonMembers = { ...meta, ...anyMembers('nextCursor', 'cacheScope', 'resultType') }
/** The members of results that clients may cache. A task's `ttlMs` has another meaning, and may be null. */
const cachedMembers = { ...commonMembers, ...anyMembers('ttlMs') }
/** The shape of a list result without its items, which are checked one by one. */
export const listResultShape: Shape = object(cachedMembers)

/**
 * The members of a task, in the form of MCP 2025-11-25 or of the Tasks extension, that must not be null. `ttl` and
 * `ttlMs` may be null.
 */
const taskMembers = anyMembers(
  'statusMessage', 'createdAt', 'lastUpdatedAt', 'pollInterval', 'pollIntervalMs', 'result', 'error', 'inputRequests'
)
const task = object(taskMembers)
/** The shape of `serverInfo`. It does not require `name` and `version`: code that needs them supplies defaults. */
export const serverInfoShape: Shape = object({
  ...stringMembers('name', 'version', 'title', 'description', 'websiteUrl'),
  icons: coercedList({
    type: 'object',
    isObject: true,
    members: {
      ...stringMembers('src', 'mimeType'),
      sizes: { type: 'list', element: string },
      theme: { values: ['"light"', '"dark"'] }
    },
    needs: 'src'
  })
}, { type: 'object', fallback: '{}' })
const listCapability = object(anyMembers('listChanged', 'subscribe'))
const capabilities = object({
  tools: listCapability,
  prompts: listCapability,
  resources: listCapability,
  logging: anyObject,
  completions: anyObject,
  tasks: object({ list: anyObject, cancel: anyObject, requests: object({ tools: object({ call: anyObject }) }) }),
  extensions: { isObject: true, each: anyObject },
  experimental: { isObject: true, each: anyObject }
})

const questions: Readonly<Record<string, Shape>> = {
  'sampling/createMessage': object({
    messages: list(samplingMessage),
    modelPreferences: object({
      hints: list(object(anyMembers('name'))), ...anyMembers('costPriority', 'speedPriority', 'intelligencePriority')
    }),
    ...anyMembers('systemPrompt', 'includeContext', 'temperature', 'maxTokens'),
    stopSequences: list(anyValue),
    metadata: anyObject,
    tools: list(tool),
    toolChoice: object(anyMembers('mode')),
    task: object(anyMembers('ttl')),
    ...meta
  }),
  'elicitation/create': object({
    ...anyMembers(
      'mode', 'message', 'url', 'elicitationId'
    ),
    requestedSchema: elicitationFormShape,
    task: object(anyMembers('ttl')),
    ...meta
  })
}
/** A server's request to the client within a result (2026-07-28). */
const inputRequest: Shape = {
  members: {
    params: object({ ...questions['sampling/createMessage']?.members, ...questions['elicitation/create']?.members })
  }
}
const inputMembers = { inputRequests: { isObject: true, each: inputRequest }, requestState: anyValue }
/** Creates the shape of a result without a fallback: a result that is `null` stays `null`. */
const result = (members: Readonly<Record<string, Shape>>): Shape => ({ members: { ...commonMembers, ...members } })

/** Creates the shape of a result that requires the member `name`. Its fallback has an empty list as that member. */
const resultWith = (name: string, members: Readonly<Record<string, Shape>>): Shape =>
  ({ isObject: true, fallback: `{"${name}":[]}`, members: { ...members, ...commonMembers }, required: [name] })
/** Whether a result must have content. Results that start a task or ask for input have none. */
const isAnswer = (valueOf: (key: string) => unknown): boolean =>
  ['task', 'inputRequests', 'requestState'].every((key) => valueOf(key) === undefined) &&
  (valueOf('resultType') ?? 'complete') === 'complete'
const neededList = (shape: Shape): Shape => ({ ...shape, fallback: '[]', isNeeded: isAnswer })

const toolResultMembers = {
  content: neededList(contentBlocks),
  isError: flag,
  task,
  ...inputMembers,
  ...anyMembers(
    'statusMessage', 'pollIntervalMs'
  )
}
/** Creates the shape of a tool result. A value that is not an object becomes the `content` of a result. */
const toolResult = (members: Readonly<Record<string, Shape>>): Shape => {
  const shape: Shape = {
    ...resultWith('content', members), type: 'object', coerce: (text) => mend(`{"content":${text}}`, shape, true).text
  }
  return shape
}
const serverMembers = { capabilities, serverInfo: serverInfoShape, instructions: string }
const results: Readonly<Record<string, Shape>> = {
  initialize: result(serverMembers),
  'server/discover': result({
    ...serverMembers, supportedVersions: list(anyValue), _meta: object({ [metaKeys.serverInfo]: serverInfoShape })
  }),
  'tools/call': toolResult(toolResultMembers),
  'tasks/result': toolResult(toolResultMembers),
  'tasks/get': result(taskMembers),
  'tasks/cancel': result(taskMembers),
  'tasks/list': result({ tasks: list(task) }),
  'prompts/get': resultWith('messages', { description: string, messages: neededList(promptMessages), ...inputMembers }),
  'completion/complete': {
    ...resultWith('completion', {
      completion: {
        ...object(
          { values: withFallback(coercedList(string), '[]'), total: number, hasMore: flag }, { type: 'object' }
        ),
        required: ['values'],
        fallback: '{"values":[]}'
      }
    }),
    fallback: '{"completion":{"values":[]}}'
  }
}
/** Creates the shape of a `resources/read` result. @param uri the requested resource's URI, as JSON text */
const readResult = (uri: string): Shape => resultWith('contents', {
  contents: neededList(
    coercedList(resourceContentsShape(uri), (text) => text.startsWith('{') || text.startsWith('"') ? text : undefined)
  ),
  ...inputMembers,
  ...anyMembers('ttlMs')
})
/** Shapes for legacy servers that differ from `results`: `structuredContent` must be an object before 2026-07-28. */
const legacyResults: Readonly<Record<string, Shape>> = Object.fromEntries(['tools/call', 'tasks/result'].map((method) =>
  [method, toolResult({ ...toolResultMembers, structuredContent: anyObject })]))
const anyResult = object(cachedMembers, { fallback: '{}' })
const listMethods: ReadonlySet<string> = new Set(Object.values(listKinds).map(({ method }) => method))

/**
 * Returns the shape of a request's result.
 * @param isModern whether the server is of the modern era
 * @param uri the requested resource's URI, as JSON text; used for `resources/read` only
 * @returns undefined for lists, whose parts are checked one by one
 */
export function resultShape (method: string, isModern: boolean, uri = '""'): Shape | undefined {
  if (listMethods.has(method)) return undefined
  if (method === 'resources/read') return readResult(uri)
  if (!isModern && Object.hasOwn(legacyResults, method)) return legacyResults[method]
  return Object.hasOwn(results, method) ? results[method] : anyResult
}

/** A value that is no error code. Integers written as strings are converted. */
const notErrorCode: Shape = {
  values: [], coerce: (text) => /^"(?:0|-?[1-9]\d{0,8})"$/.test(text) ? text.slice(1, -1) : undefined
}
/** An error code: an integer of 32 bits, since clients refuse a whole answer with another number. */
const errorCode: Shape = {
  fallback: '-32603', select: (text) => (Number(text) | 0) === Number(text) ? number : notErrorCode
}

/** The `error` member of an answer; its `data` may be anything. */
export const errorShape: Shape = {
  ...object({
    code: errorCode,
    message: {
      ...requiredText,
      fallback: (textOf) => JSON.stringify('The server returned this error without a message ' +
        `(${truncate(textOf('code') ?? 'no code', 30)})`)
    }
  }),
  required: ['code', 'message']
}

const notifications: Readonly<Record<string, Shape>> = {
  'notifications/progress': object({ ...anyMembers('total', 'message'), ...meta }),
  'notifications/message': object({ ...anyMembers('logger'), ...meta }),
  'notifications/cancelled': object({ ...anyMembers('reason'), ...meta }),
  'notifications/tasks/status': object({ ...taskMembers, ...meta })
}
const anyParams = object(meta)

/** Returns the shape of the params of a server's request or notification. */
export function paramsShape (method: string): Shape {
  if (Object.hasOwn(questions, method)) return questions[method] ?? anyParams
  return Object.hasOwn(notifications, method) ? notifications[method] ?? anyParams : anyParams
}
