import { hash } from 'node:crypto'
import { rpcCode, RpcError } from './errors.ts'
import { isObject } from './json.ts'
import { truncate } from './text.ts'
import { memoized } from './memoized.ts'

type Capabilities = Record<string, unknown>
export type ClientCapabilities = Capabilities
export type ServerCapabilities = Capabilities

/** The client capabilities that allow servers to send requests to the client. */
const inputCapabilities = ['sampling', 'elicitation', 'roots'] as const

/** Whether a client accepts any requests from servers. */
export const acceptsQuestions = (client: ClientCapabilities): boolean =>
  inputCapabilities.some((name) => isObject(client[name]))

/** A request from a server to a client. */
export interface ServerRequest { readonly method: string, readonly params: Readonly<Record<string, unknown>> }

/** The client capability that each server request requires. */
const requiredCapabilities = new Map<string, typeof inputCapabilities[number]>([
  ['sampling/createMessage', 'sampling'],
  ['elicitation/create', 'elicitation'],
  ['roots/list', 'roots']
])

/** Whether MCP defines this method of server requests. `ping`, which concerns one connection, is not among them. */
export const isServerRequestMethod = (method: string): boolean => requiredCapabilities.has(method)

/**
 * Checks that a client declares the capability that a server request requires, including its mode and optional
 * features. Requests with unknown methods are allowed.
 * @throws RpcError to answer the server with
 */
export function requireClientCapability (client: ClientCapabilities, { method, params }: ServerRequest): void {
  const need = requiredCapabilities.get(method)
  if (need === undefined) return
  const own = client[need]
  if (!isObject(own)) throw new RpcError(rpcCode.methodNotFound, `The client does not support ${method}`)
  if (need === 'elicitation') {
    const mode = params.mode === 'url' ? 'url' : 'form'
    // An elicitation capability without modes allows form mode.
    const can = own[mode] !== undefined || (mode === 'form' && own.url === undefined)
    if (!can) throw new RpcError(rpcCode.invalidParams, `The client does not support elicitation of mode ${mode}`)
  }
  if (need === 'sampling' && params.tools !== undefined && own.tools === undefined) {
    throw new RpcError(rpcCode.invalidParams, 'The client does not support sampling with tools')
  }
}

/** The Events extension (SEP-3415). Its drafts used the capability `events` instead. */
export const eventsExtension = 'io.modelcontextprotocol/events'

/** The Skills extension (SEP-2640). */
export const skillsExtension = 'io.modelcontextprotocol/skills'

/** Whether a client or server declares an extension. */
export const hasExtension = ({ extensions }: Readonly<Capabilities>, name: string): boolean =>
  isObject(extensions) && isObject(extensions[name])

/** The Tasks extension of MCP 2026-07-28. */
export const tasksExtension = 'io.modelcontextprotocol/tasks'

export const hasTasksExtension = (capabilities: Capabilities): boolean => hasExtension(capabilities, tasksExtension)

/** Returns the capabilities without an extension; the same object if the extension is not declared. */
function withoutExtension (capabilities: Capabilities, name: string): Capabilities {
  const { extensions } = capabilities
  if (!isObject(extensions) || extensions[name] === undefined) return capabilities
  const { [name]: _, ...others } = extensions
  return { ...capabilities, extensions: others }
}
const withoutTasksExtension = (capabilities: Capabilities): Capabilities =>
  withoutExtension(capabilities, tasksExtension)

export function withTasksExtension (capabilities: Capabilities): Capabilities {
  const { extensions } = capabilities
  return { ...capabilities, extensions: { ...(isObject(extensions) && extensions), [tasksExtension]: {} } }
}

/** Converts a route's capabilities for legacy clients: tasks in the form of 2025-11-25 only, and no events. */
export function legacyRouteCapabilities ({ events: _, ...announced }: ServerCapabilities): ServerCapabilities {
  const route = withoutExtension(announced, eventsExtension)
  if (!hasTasksExtension(route)) return withoutTasksExtension(route)
  const tasks = { cancel: {}, requests: { tools: { call: {} } }, ...(isObject(route.tasks) && route.tasks) }
  return { ...withoutTasksExtension(route), tasks }
}

/** Converts a route's capabilities for modern clients: tasks as an extension only. */
export function modernRouteCapabilities ({ tasks, ...route }: ServerCapabilities): ServerCapabilities {
  const requests = isObject(tasks) ? tasks.requests : undefined
  const runsTools = isObject(requests) && isObject(requests.tools) && requests.tools.call !== undefined
  return runsTools || hasTasksExtension(route) ? withTasksExtension(route) : withoutTasksExtension(route)
}

/**
 * Returns the capabilities that the gateway declares on a connection used by one client: those of the client without
 * `tasks` and the Tasks extension. `tasks` (MCP 2025-11-25) is for tasks that servers create at the client, which would
 * not outlive the connection; the extension is declared with each request.
 */
export function ownLinkCapabilities (client: ClientCapabilities): ClientCapabilities {
  const { tasks: _, ...rest } = withoutTasksExtension(client)
  return rest
}

/** Max length of a capability class, in characters; a longer one is hashed. */
const maxClassLength = 512

/** The client capabilities that affect servers, with their members. */
const knownCapabilities: ReadonlyArray<readonly [string, readonly string[]]> = [
  ['sampling', ['context', 'tools']],
  ['elicitation', ['form', 'url']],
  ['roots', ['listChanged']]
]
/**
 * The client extensions that change what a server lists: for UI, a server may add tools; for Skills, it may omit some.
 */
const sharedExtensions = ['io.modelcontextprotocol/ui', skillsExtension] as const

/**
 * Returns the capabilities that the gateway declares on a connection shared by several clients: only those that affect
 * a server's behavior. Others could put each client into a capability class of its own.
 */
export function sharedLinkCapabilities (client: ClientCapabilities): ClientCapabilities {
  const result: ClientCapabilities = {}
  for (const [name, members] of knownCapabilities) {
    const own = client[name]
    if (isObject(own)) {
      result[name] =
        Object.fromEntries(members.flatMap((member) => (own[member] === undefined ? [] : [[member, own[member]]])))
    }
  }
  const { extensions } = client
  const own = isObject(extensions) ? sharedExtensions.filter((name) => extensions[name] !== undefined) : []
  if (isObject(extensions) && own.length > 0) {
    result.extensions = Object.fromEntries(own.map((name) => [name, extensions[name]]))
  }
  return result
}

/**
 * Returns the capability class of a client: a string that is equal for clients with equal `sharedLinkCapabilities`. The
 * object must not be changed afterwards, since the result is cached.
 */
export const capabilityClassOf = memoized((client: ClientCapabilities): string => {
  const sorted = (value: unknown): unknown => isObject(value)
    ? Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]))
    : Array.isArray(value) ? value.map(sorted) : value
  const whole = JSON.stringify(sorted(sharedLinkCapabilities(client)))
  // The string is a key in many maps, and a client may declare capabilities up to the size limit of a request.
  return whole.length > maxClassLength ? `{"sha256":"${hash('sha256', whole, 'hex')}"}` : whole
})

/** The capability class of clients without capabilities, and of the gateway's own requests. */
export const emptyCapabilityClass = '{}'

/** A JSON type, or an object with members of these types. `*` applies to all other members. */
type CapabilityType = 'boolean' | 'object' | { readonly [member: string]: CapabilityType }

/** The types of the members of server capabilities in MCP's schema. */
const serverMembers: CapabilityType = {
  tools: { listChanged: 'boolean' },
  prompts: { listChanged: 'boolean' },
  resources: { listChanged: 'boolean', subscribe: 'boolean' },
  logging: {},
  completions: {},
  tasks: { list: 'object', cancel: 'object', requests: { '*': { '*': 'object' } } },
  extensions: { '*': 'object' },
  experimental: { '*': 'object' }
}

/**
 * Removes those capabilities of a server, and those of their members, that violate MCP's schema: clients that validate
 * capabilities could not connect to a route with this server.
 * @returns `problems`: a sentence for each removed capability or member
 */
export function removeInvalidCapabilities (server: ServerCapabilities): {
  capabilities: ServerCapabilities, problems: string[]
} {
  const problems: string[] = []
  const valid = (value: Readonly<Record<string, unknown>>, types: CapabilityType, path: string): ServerCapabilities =>
    Object.fromEntries(Object.entries(value).flatMap(([name, each]): Array<[string, unknown]> => {
      const type = typeof types === 'string' ? undefined : Object.hasOwn(types, name) ? types[name] : types['*']
      if (type === undefined) return [[name, each]]
      if (type === 'boolean' ? typeof each === 'boolean' : isObject(each)) {
        return [[name, isObject(each) ? valid(each, type, `${path}${name}.`) : each]]
      }
      const expected = type === 'boolean' ? 'a boolean' : 'an object'
      problems.push(`capabilities: ${JSON.stringify(truncate(path + name, 100))} is not ${expected} and was omitted`)
      return []
    }))
  return { capabilities: valid(server, serverMembers, ''), problems }
}

const listCapabilities = ['tools', 'prompts', 'resources', 'events'] as const

/** Returns a server's capabilities as its route declares them: with `listChanged`, since settings change lists. */
export function withListChanged (server: ServerCapabilities): ServerCapabilities {
  const result = { ...server }
  for (const name of listCapabilities) {
    const own = server[name]
    if (isObject(own)) result[name] = { ...own, listChanged: true }
  }
  const { extensions } = result
  if (isObject(extensions) && isObject(extensions[eventsExtension])) {
    result.extensions = { ...extensions, [eventsExtension]: { ...extensions[eventsExtension], listChanged: true } }
  }
  return result
}

/**
 * Merges the capabilities of a route's servers as the route declares them: those of MCP that any server declares,
 * except `experimental`, which refers to a single server.
 */
export function mergeCapabilities (servers: ServerCapabilities[]): ServerCapabilities {
  const result: ServerCapabilities = {}
  for (const server of servers) {
    for (const name of ['tools', 'prompts', 'resources', 'logging', 'completions', 'tasks', 'events', 'extensions']) {
      const own = server[name]
      if (isObject(own)) result[name] = mergeMembers(result[name], own)
    }
  }
  return withListChanged(result)
}

/**
 * Merges the members of two capabilities, or settings of two extensions. A member that is `true` in either is `true` in
 * the result.
 */
function mergeMembers (one: unknown, other: Capabilities): Capabilities {
  if (!isObject(one)) return other
  const merged = Object.entries({ ...one, ...other }).map(([name, value]) => {
    const former = Object.hasOwn(one, name) ? one[name] : undefined
    return [name, former === true ? true : isObject(value) ? mergeMembers(former, value) : value]
  })
  return Object.fromEntries(merged) as Capabilities
}
