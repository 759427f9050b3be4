// The members of MCP's types that may not be null, or are objects (all revisions), and the keywords of JSON Schema that
// are such.
import { memberOf } from './json.ts'
import { listKinds, type ListKind } from './lists.ts'
import type { Shape } from './mending.ts'

const value: Shape = {}
/** An object whose members MCP does not define. */
const opaque: Shape = { isObject: true }
const object = (members: Readonly<Record<string, Shape>>, more: Shape = {}): Shape => ({ isObject: true, members, ...more })
const list = (element: Shape): Shape => ({ element })
const names = (...keys: string[]): Record<string, Shape> => Object.fromEntries(keys.map((key) => [key, value]))
const required = (shape: Shape, fallback: string): Shape => ({ ...shape, fallback })
const text = required(value, '""')
const meta = { _meta: opaque }

/**
 * Keywords that take no null, nor anything else to look into. `default`, `const` and `example` are the author's values.
 */
const plainKeywords = names(
  '$id', '$schema', '$ref', '$anchor', '$dynamicRef', '$dynamicAnchor', '$recursiveRef', '$recursiveAnchor', '$vocabulary', '$comment',
  'id', 'type', 'enum', 'enumNames', 'title', 'description', 'examples', 'deprecated', 'readOnly', 'writeOnly', 'format', 'pattern',
  'multipleOf', 'maximum', 'exclusiveMaximum', 'minimum', 'exclusiveMinimum', 'maxLength', 'minLength', 'maxItems', 'minItems',
  'uniqueItems', 'x-mcp-header', 'maxContains', 'minContains', 'maxProperties', 'minProperties', 'contentEncoding', 'contentMediaType'
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

const contents = object({
  ...names('uri', 'mimeType', 'blob'), text: { ...text, isNeeded: (textOf) => textOf('blob') === undefined }, ...meta
})
/**
 * A block of content of any type: text, image, audio, a resource or a link to one, a use of a tool. `input` has a
 * call's arguments.
 */
const blockMembers: Readonly<Record<string, Shape>> = {
  ...resource,
  name: { ...text, isNeeded: (textOf) => textOf('type') === '"resource_link"' },
  text: { ...text, isNeeded: (textOf) => textOf('type') === '"text"' },
  data: value,
  resource: contents
}
const block: Shape = { members: blockMembers }
const blocks = list(block)
/** Content for a model, which may be the result of a tool. */
const told: Shape = { members: { ...blockMembers, content: blocks, isError: value } }
const samplingMessage: Shape = { members: { content: { ...told, element: told }, ...meta } }

/** A task of 2025-11-25. Its `ttl` may be null. */
const taskMembers = names('statusMessage', 'createdAt', 'lastUpdatedAt', 'pollInterval')
const task = object(taskMembers)
/** A name or version that is null is made up where clients want one. */
export const serverInfo: Shape = object({ ...names('name', 'version', 'title', 'description', 'websiteUrl'), icons }, { fallback: '{}' })
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
  members: { params: object({ ...questions['sampling/createMessage']?.members, ...questions['elicitation/create']?.members }) }
}
const asking = { inputRequests: { isObject: true, each: inputRequest }, requestState: value }
/** The result of a method that has one: without any it is no answer. */
const result = (members: Readonly<Record<string, Shape>>): Shape => ({ members: { ...members, ...common } })

const called = { content: required(blocks, '[]'), isError: value, task, ...asking }
const results: Readonly<Record<string, Shape>> = {
  initialize: result({ capabilities, serverInfo, instructions: value }),
  'server/discover': result({ capabilities, serverInfo, instructions: value, supportedVersions: list(value) }),
  'tools/call': result(called),
  'tasks/result': result(called),
  'tasks/get': result(taskMembers),
  'tasks/cancel': result(taskMembers),
  'tasks/list': result({ tasks: list(task) }),
  'prompts/get': result({ description: value, messages: required(list({ members: { content: block } }), '[]'), ...asking }),
  'resources/read': result({ contents: required(list(contents), '[]'), ...asking }),
  'completion/complete': result({
    completion: required(object({ values: required(list(value), '[]'), ...names('total', 'hasMore') }), '{"values":[]}')
  })
}
/** Before 2026-07-28, what a tool returns beside its content is an object. */
const legacyResults: Readonly<Record<string, Shape>> = Object.fromEntries(['tools/call', 'tasks/result'].map((method) =>
  [method, result({ ...called, structuredContent: opaque })]))
const anyResult = object(common, { fallback: '{}' })
const lists: ReadonlySet<string> = new Set(Object.values(listKinds).map(({ method }) => method))

/**
 * The result of a request.
 * @param isModern of a server of the modern era
 * @returns undefined: its parts are read one by one
 */
export function resultShape (method: string, isModern: boolean): Shape | undefined {
  if (lists.has(method)) return undefined
  if (!isModern && Object.hasOwn(legacyResults, method)) return legacyResults[method]
  return Object.hasOwn(results, method) ? results[method] : anyResult
}

/** The `error` of an answer, whose `data` may be anything. */
export const errorShape: Shape = object({ code: required(value, '-32603'), message: text })

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
