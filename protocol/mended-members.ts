// The members of MCP's types that may not be null, are objects, or have to be there (all revisions), and the keywords
// of JSON Schema that are such.
import { elementsOf, memberOf } from './json.ts'
import { listKinds, type ListKind } from './lists.ts'
import { listOf, mend, type Shape } from './mending.ts'
import { metaKeys } from './modern/envelope.ts'
import { truncate } from './text.ts'

const value: Shape = {}
/** An object whose members MCP does not define. */
const opaque: Shape = { isObject: true }
const object = (
  members: Readonly<Record<string, Shape>>, more: Shape = {}
): Shape => ({ isObject: true, members, ...more })
const list = (element: Shape): Shape => ({ element })
const names = (...keys: string[]): Record<string, Shape> => Object.fromEntries(keys.map((key) => [key, value]))
const required = (shape: Shape, fallback: string): Shape => ({ ...shape, fallback })
const meta = { _meta: opaque }

const string: Shape = { type: 'string' }
const number: Shape = { type: 'number' }
const strings = (...keys: string[]): Record<string, Shape> => Object.fromEntries(keys.map((key) => [key, string]))
/** A text that has to be there. A value of another type is told as it was written. */
const words: Shape = { ...string, fallback: '""', coerce: (text) => JSON.stringify(text) }
const flag: Shape = { type: 'boolean', coerce: (text) => text === '"true"' || text === '1' ? 'true' : undefined }
/** A list whose elements are checked. @param single what one thing that stands in its place is as an element */
const checkedList = (element: Shape, single: (text: string) => string | undefined = () => undefined): Shape => {
  const shape: Shape = { type: 'list', element }
  const coerce = (text: string): string | undefined => {
    const one = single(text)
    const list = listOf(text) ?? (one === undefined ? undefined : `[${one}]`)
    return list === undefined ? undefined : mend(list, shape, true).text
  }
  return { ...shape, coerce }
}

/**
 * Keywords that take no null, nor anything else to look into. `default`, `const` and `example` are the author's values.
 */
const plainKeywords = names(
  '$id', '$schema', '$ref', '$anchor', '$dynamicRef', '$dynamicAnchor', '$recursiveRef', '$recursiveAnchor',
  '$vocabulary', '$comment',
  'id', 'type', 'enum', 'enumNames', 'title', 'description', 'examples', 'deprecated', 'readOnly', 'writeOnly',
  'format', 'pattern',
  'multipleOf', 'maximum', 'exclusiveMaximum', 'minimum', 'exclusiveMinimum', 'maxLength', 'minLength', 'maxItems',
  'minItems',
  'uniqueItems', 'x-mcp-header', 'maxContains', 'minContains', 'maxProperties', 'minProperties', 'contentEncoding',
  'contentMediaType'
)

/** @param hasTuples `items` may be a list of schemas, as before 2020-12 */
function schemaShape (hasTuples: boolean): Shape {
  const members: Record<string, Shape> = { ...plainKeywords }
  const schema: Shape = { isObject: true, members }
  // A schema that is null says nothing, and what it is of is still there.
  const any = required(schema, '{}')
  const map: Shape = { isObject: true, each: any }
  for (const key of ['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas']) members[key] = map
  for (const key of ['allOf', 'anyOf', 'oneOf']) members[key] = list(schema)
  for (const key of [
    'additionalProperties', 'unevaluatedProperties', 'propertyNames', 'contains', 'additionalItems', 'unevaluatedItems',
    'not', 'if', 'then', 'else', 'contentSchema'
  ]) members[key] = schema
  members.prefixItems = list(any)
  members.items = hasTuples ? { members, element: any } : schema
  members.required = list(value)
  members.dependentRequired = { isObject: true, each: list(value) }
  members.dependencies = { isObject: true, each: { members } }
  return schema
}

const schemas = { today: schemaShape(false), withTuples: schemaShape(true) }
const olderDraft = /draft-0[3-7]|2019-09/
const schema: Shape = {
  isObject: true,
  of: (text) => olderDraft.test(memberOf(text, '$schema') ?? '') ? schemas.withTuples : schemas.today
}

/** The schema of a form, where MCP has no default that is null. */
const field = object({ ...schemas.today.members, default: value }, { fallback: '{}' })
const form = object({ ...schemas.today.members, properties: { isObject: true, each: field } })

const annotations = object({ audience: list(value), ...names('priority', 'lastModified') })
const icons = list(object({ ...names('src', 'mimeType', 'theme'), sizes: list(value) }, { needs: 'src' }))
const described = { ...names('title', 'description'), icons, ...meta }
const resource = { uri: value, name: value, ...described, ...names('mimeType', 'size'), annotations }
const toolAnnotations = object(names('title', 'readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'))
const tool = object({
  name: value,
  ...described,
  inputSchema: required(schema, '{"type":"object"}'),
  outputSchema: schema,
  annotations: toolAnnotations,
  execution: object(names('taskSupport'))
})
const promptArgument = object(names('name', 'title', 'description', 'required'), { needs: 'name' })

/** The items of each list. */
export const itemShapes: Readonly<Record<ListKind, Shape>> = {
  tools: tool,
  prompts: object({ name: value, ...described, arguments: list(promptArgument) }),
  resources: object(resource),
  resourceTemplates: object({ ...resource, uriTemplate: value })
}

/** The members of a result beside what it is for. */
const common = { ...meta, ...names('nextCursor', 'ttlMs', 'cacheScope', 'resultType') }
/** Those of a list's result, whose items are read one by one. */
export const besideList: Shape = object(common)

/** Contents of a resource. @param uri of the resource that was asked for, as JSON text */
const contentsOf = (uri: string): Shape => ({
  type: 'object',
  isObject: true,
  coerce: (text) => text.startsWith('"') ? `{"uri":${uri},"text":${text}}` : undefined,
  members: {
    uri: { ...string, fallback: uri },
    ...strings('mimeType', 'blob'),
    text: { ...words, isNeeded: (valueOf) => valueOf('blob') === undefined },
    ...meta
  },
  required: ['uri', 'text']
})
const contents: Shape = { ...contentsOf('""'), fallback: '{"uri":"","text":""}' }

/** A text block. @param text as JSON: a string, or what is no block */
const asBlock = (text: string): string => `{"type":"text","text":${text.startsWith('"') ? text : JSON.stringify(text)}}`
const isOf = (...types: unknown[]) =>
  (valueOf: (key: string) => unknown): boolean => types.includes(valueOf('type') ?? 'text')
/**
 * A block of content of any type: text, image, audio, a resource or a link to one, a use of a tool. `input` has a
 * call's arguments.
 */
const blockMembers: Readonly<Record<string, Shape>> = {
  ...strings('title', 'description'),
  type: { ...string, fallback: '"text"' },
  text: { ...words, isNeeded: isOf('text') },
  data: { ...string, fallback: '""', isNeeded: isOf('image', 'audio') },
  mimeType: { ...string, fallback: '"application/octet-stream"', isNeeded: isOf('image', 'audio') },
  uri: { ...string, fallback: '""', isNeeded: isOf('resource_link') },
  name: { ...string, fallback: '""', isNeeded: isOf('resource_link') },
  resource: { ...contents, isNeeded: isOf('resource') },
  size: number,
  annotations: object({ audience: checkedList(string), priority: number, lastModified: string }, { type: 'object' }),
  icons: {
    type: 'list',
    element: object(
      { ...strings('src', 'mimeType', 'theme'), sizes: checkedList(string) }, { needs: 'src' }
    )
  },
  ...meta
}
const block: Shape = {
  type: 'object',
  isObject: true,
  coerce: asBlock,
  members: blockMembers,
  required: ['type', 'text', 'data', 'mimeType', 'uri', 'name', 'resource']
}
const blocks = checkedList(block, (text) => /"(?:type|text)"/.test(text) && text.startsWith('{') ? text : asBlock(text))
/** Content for a model, which may be the result of a tool. */
const told: Shape = { members: { ...blockMembers, content: list({ members: blockMembers }), isError: value } }
const samplingMessage: Shape = { members: { content: { ...told, element: told }, ...meta } }

/** A message of a prompt has one block; a list of one is that block. */
const promptContent: Shape = {
  ...block,
  fallback: asBlock('""'),
  coerce: (text) => {
    const [first = '', ...more] = text.startsWith('[') ? elementsOf(text, 2) : []
    return first.startsWith('{') && more.length === 0 ? mend(first, block, true).text : asBlock(text)
  }
}
const promptMessage: Shape = {
  type: 'object',
  isObject: true,
  coerce: (text) => `{"role":"user","content":${asBlock(text)}}`,
  members: { role: { values: ['"user"', '"assistant"'], fallback: '"user"' }, content: promptContent },
  required: ['role', 'content']
}
const promptMessages =
  checkedList(promptMessage, (text) => text.startsWith('{') || text.startsWith('"') ? text : undefined)

/** A task of 2025-11-25. Its `ttl` may be null. */
const taskMembers = names('statusMessage', 'createdAt', 'lastUpdatedAt', 'pollInterval')
const task = object(taskMembers)
/** A name or version that is absent is made up where clients want one. */
export const serverInfo: Shape = object({
  ...strings('name', 'version', 'title', 'description', 'websiteUrl'),
  icons: checkedList({
    type: 'object',
    isObject: true,
    members: {
      ...strings('src', 'mimeType'), sizes: { type: 'list', element: string }, theme: { values: ['"light"', '"dark"'] }
    },
    needs: 'src'
  })
}, { type: 'object', fallback: '{}' })
const listCapability = object(names('listChanged', 'subscribe'))
const capabilities = object({
  tools: listCapability,
  prompts: listCapability,
  resources: listCapability,
  logging: opaque,
  completions: opaque,
  tasks: object({ list: opaque, cancel: opaque, requests: object({ tools: object({ call: opaque }) }) }),
  extensions: { isObject: true, each: opaque },
  experimental: { isObject: true, each: opaque }
})

const questions: Readonly<Record<string, Shape>> = {
  'sampling/createMessage': object({
    messages: list(samplingMessage),
    modelPreferences: object({
      hints: list(object(names('name'))), ...names('costPriority', 'speedPriority', 'intelligencePriority')
    }),
    ...names('systemPrompt', 'includeContext', 'temperature', 'maxTokens'),
    stopSequences: list(value),
    metadata: opaque,
    tools: list(tool),
    toolChoice: object(names('mode')),
    task: object(names('ttl')),
    ...meta
  }),
  'elicitation/create': object({
    ...names('mode', 'message', 'url', 'elicitationId'), requestedSchema: form, task: object(names('ttl')), ...meta
  })
}
/** Questions that stand in an answer (2026-07-28). */
const inputRequest: Shape = {
  members: {
    params: object({ ...questions['sampling/createMessage']?.members, ...questions['elicitation/create']?.members })
  }
}
const asking = { inputRequests: { isObject: true, each: inputRequest }, requestState: value }
/** The result of a method that has one: without any it is no answer. */
const result = (members: Readonly<Record<string, Shape>>): Shape => ({ members: { ...common, ...members } })

/** A result that has at least an empty list, so that nothing at all is one, too. */
const resultWith = (name: string, members: Readonly<Record<string, Shape>>): Shape =>
  ({ isObject: true, fallback: `{"${name}":[]}`, members: { ...members, ...common }, required: [name] })
/** Of a task that has begun, and of a question, there is no content yet. */
const isAnswer = (valueOf: (key: string) => unknown): boolean =>
  ['task', 'inputRequests', 'requestState'].every((key) => valueOf(key) === undefined) &&
  (valueOf('resultType') ?? 'complete') === 'complete'
const neededList = (shape: Shape): Shape => ({ ...shape, fallback: '[]', isNeeded: isAnswer })

const called = { content: neededList(blocks), isError: flag, task, ...asking }
/** What a tool answers in place of an object is its content. */
const toolResult = (members: Readonly<Record<string, Shape>>): Shape => {
  const shape: Shape = {
    ...resultWith('content', members), type: 'object', coerce: (text) => mend(`{"content":${text}}`, shape, true).text
  }
  return shape
}
const discovered = { capabilities, serverInfo, instructions: string }
const results: Readonly<Record<string, Shape>> = {
  initialize: result(discovered),
  'server/discover': result({
    ...discovered, supportedVersions: list(value), _meta: object({ [metaKeys.serverInfo]: serverInfo })
  }),
  'tools/call': toolResult(called),
  'tasks/result': toolResult(called),
  'tasks/get': result(taskMembers),
  'tasks/cancel': result(taskMembers),
  'tasks/list': result({ tasks: list(task) }),
  'prompts/get': resultWith('messages', { description: string, messages: neededList(promptMessages), ...asking }),
  'completion/complete': {
    ...resultWith('completion', {
      completion: {
        ...object({ values: required(checkedList(string), '[]'), total: number, hasMore: flag }, { type: 'object' }),
        required: ['values'],
        fallback: '{"values":[]}'
      }
    }),
    fallback: '{"completion":{"values":[]}}'
  }
}
/** The result of `resources/read`. @param uri of the resource that was asked for, as JSON text */
const readResult = (uri: string): Shape => resultWith('contents', {
  contents: neededList(
    checkedList(contentsOf(uri), (text) => text.startsWith('{') || text.startsWith('"') ? text : undefined)
  ),
  ...asking
})
/** Before 2026-07-28, what a tool returns beside its content is an object. */
const legacyResults: Readonly<Record<string, Shape>> = Object.fromEntries(['tools/call', 'tasks/result'].map((method) =>
  [method, toolResult({ ...called, structuredContent: opaque })]))
const anyResult = object(common, { fallback: '{}' })
const lists: ReadonlySet<string> = new Set(Object.values(listKinds).map(({ method }) => method))

/**
 * The result of a request.
 * @param isModern of a server of the modern era
 * @param uri of the resource that was asked for, as JSON text
 * @returns undefined: its parts are read one by one
 */
export function resultShape (method: string, isModern: boolean, uri = '""'): Shape | undefined {
  if (lists.has(method)) return undefined
  if (method === 'resources/read') return readResult(uri)
  if (!isModern && Object.hasOwn(legacyResults, method)) return legacyResults[method]
  return Object.hasOwn(results, method) ? results[method] : anyResult
}

/** The `error` of an answer, whose `data` may be anything. */
export const errorShape: Shape = {
  ...object({
    code: {
      ...number, fallback: '-32603', coerce: (text) => /^"-?\d{1,9}"$/.test(text) ? text.slice(1, -1) : undefined
    },
    message: {
      ...words,
      fallback: (textOf) => JSON.stringify('The server gave no message with this error ' +
        `(${truncate(textOf('code') ?? 'no code', 30)})`)
    }
  }),
  required: ['code', 'message']
}

const notifications: Readonly<Record<string, Shape>> = {
  'notifications/progress': object({ ...names('total', 'message'), ...meta }),
  'notifications/message': object({ ...names('logger'), ...meta }),
  'notifications/cancelled': object({ ...names('reason'), ...meta }),
  'notifications/tasks/status': object({ ...taskMembers, ...meta })
}
const anyParams = object(meta)

/** The params of a request or notification of a server. */
export function paramsShape (method: string): Shape {
  if (Object.hasOwn(questions, method)) return questions[method] ?? anyParams
  return Object.hasOwn(notifications, method) ? notifications[method] ?? anyParams : anyParams
}
