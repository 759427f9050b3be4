import { hash } from 'node:crypto'
import { code, RpcError } from './errors.ts'
import { isObject } from './json.ts'
import { truncate } from './text.ts'
import { memoized } from './memoized.ts'

type Capabilities = Record<string, unknown>
export type ClientCapabilities = Capabilities
export type ServerCapabilities = Capabilities

/** The client capabilities that allow an upstream to send requests to the client. */
const inputCapabilities = ['sampling', 'elicitation', 'roots'] as const

/** Whether a client declares a capability that allows an upstream to send requests to it. */
export const acceptsQuestions = (client: ClientCapabilities): boolean =>
  inputCapabilities.some((name) => isObject(client[name]))

export interface ServerRequest { readonly method: string, readonly params: Readonly<Record<string, unknown>> }

/** The capability that each known server request needs. */
const requiredCapabilities = new Map<string, typeof inputCapabilities[number]>([
  ['sampling/createMessage', 'sampling'],
  ['elicitation/create', 'elicitation'],
  ['roots/list', 'roots']
])

/**
 * Checks that a client declares the capability for a server request, including its mode and its parts. Requests with
 * unknown methods are always allowed.
 * @throws RpcError to answer the server with
 */
export function requireClientCapability (client: ClientCapabilities, { method, params }: ServerRequest): void {
  const need = requiredCapabilities.get(method)
  if (need === undefined) return
  const own = client[need]
  if (!isObject(own)) throw new RpcError(code.methodNotFound, `The client does not support ${method}`)
  if (need === 'elicitation') {
    const mode = params.mode === 'url' ? 'url' : 'form'
    // An elicitation capability without modes means forms.
    const can = own[mode] !== undefined || (mode === 'form' && own.url === undefined)
    if (!can) throw new RpcError(code.invalidParams, `The client does not support elicitation of mode ${mode}`)
  }
  if (need === 'sampling' && params.tools !== undefined && own.tools === undefined) {
    throw new RpcError(code.invalidParams, 'The client does not support sampling with tools')
  }
}

/** The Events extension (SEP-3415). Its drafts announced it as the capability `events`. */
export const eventsExtension = 'io.modelcontextprotocol/events'

/** The extension "Skills" (SEP-2640). */
export const skillsExtension = 'io.modelcontextprotocol/skills'

/** Whether a client or server declares an extension. */
export const hasExtension = ({ extensions }: Readonly<Capabilities>, name: string): boolean =>
  isObject(extensions) && isObject(extensions[name])

/** The extension "Tasks" of MCP 2026-07-28. */
export const tasksExtension = 'io.modelcontextprotocol/tasks'

/** Whether a client or server declares the Tasks extension. */
export const hasTasksExtension = (capabilities: Capabilities): boolean => hasExtension(capabilities, tasksExtension)

/** The capabilities without an extension; the same object when it is not there. */
function withoutExtension (capabilities: Capabilities, name: string): Capabilities {
  const { extensions } = capabilities
  if (!isObject(extensions) || extensions[name] === undefined) return capabilities
  const { [name]: _, ...others } = extensions
  return { ...capabilities, extensions: others }
}
const withoutTasksExtension = (capabilities: Capabilities): Capabilities =>
  withoutExtension(capabilities, tasksExtension)

/** The capabilities with the Tasks extension. */
export function withTasksExtension (capabilities: Capabilities): Capabilities {
  const { extensions } = capabilities
  return { ...capabilities, extensions: { ...(isObject(extensions) && extensions), [tasksExtension]: {} } }
}

/** A route's capabilities for a legacy client: tasks in the form of 2025-11-25 only, and no events. */
export function legacyRouteCapabilities ({ events: _, ...announced }: ServerCapabilities): ServerCapabilities {
  const route = withoutExtension(announced, eventsExtension)
  if (!hasTasksExtension(route)) return withoutTasksExtension(route)
  const tasks = { cancel: {}, requests: { tools: { call: {} } }, ...(isObject(route.tasks) && route.tasks) }
  return { ...withoutTasksExtension(route), tasks }
}

/** A route's capabilities for a modern client: tasks as the extension only. */
export function modernRouteCapabilities ({ tasks, ...route }: ServerCapabilities): ServerCapabilities {
  const requests = isObject(tasks) ? tasks.requests : undefined
  const runsTools = isObject(requests) && isObject(requests.tools) && requests.tools.call !== undefined
  return runsTools || hasTasksExtension(route) ? withTasksExtension(route) : withoutTasksExtension(route)
}

/**
 * The capabilities that the gateway declares on a link of one client: the client's own, except `tasks` (MCP 2025-11-25,
 * client side), since such tasks live no longer than a connection. The Tasks extension is declared with each request.
 */
export function ownLinkCapabilities (client: ClientCapabilities): ClientCapabilities {
  const { tasks: _, ...rest } = withoutTasksExtension(client)
  return rest
}

const maxClassLength = 512

const knownCapabilities: ReadonlyArray<readonly [string, readonly string[]]> = [
  ['sampling', ['context', 'tools']],
  ['elicitation', ['form', 'url']],
  ['roots', ['listChanged']]
]
/** The extensions that servers act upon: by the first they show tools, by the second they may leave some out. */
const sharedExtensions = ['io.modelcontextprotocol/ui', skillsExtension] as const

/**
 * The capabilities that the gateway declares on a link shared by several clients: those that upstreams act upon. Others
 * are left out, since they could put every client into a class of its own.
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
 * The capability class of a client: a text that is equal for clients with equal `sharedLinkCapabilities`. The object
 * must not be changed afterwards, since the result is cached.
 */
export const capabilityClassOf = memoized((client: ClientCapabilities): string => {
  const sorted = (value: unknown): unknown => isObject(value)
    ? Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]))
    : Array.isArray(value) ? value.map(sorted) : value
  const whole = JSON.stringify(sorted(sharedLinkCapabilities(client)))
  // The text is a key in many maps, and a client may declare as much as fits into a request.
  return whole.length > maxClassLength ? `{"sha256":"${hash('sha256', whole, 'hex')}"}` : whole
})

/** The class of clients without capabilities. The gateway's own links have this class. */
export const emptyCapabilityClass = '{}'

/** The JSON types of the members of each server capability in MCP's schema. `*`: any other member. */
const serverMembers: Readonly<Record<string, Readonly<Record<string, 'boolean' | 'object'>>>> = {
  tools: { listChanged: 'boolean' },
  prompts: { listChanged: 'boolean' },
  resources: { listChanged: 'boolean', subscribe: 'boolean' },
  logging: {},
  completions: {},
  tasks: { list: 'object', cancel: 'object', requests: 'object' },
  extensions: { '*': 'object' },
  experimental: { '*': 'object' }
}

/**
 * Removes an upstream's capabilities that violate MCP's schema: a client that validates them could not connect to any
 * route with this server.
 * @returns `problems`: a sentence for each capability that was removed
 */
export function validCapabilities (server: ServerCapabilities): {
  capabilities: ServerCapabilities, problems: string[]
} {
  const problems: string[] = []
  const check = (isValid: boolean, path: string, type: string): boolean => {
    if (!isValid) problems.push(`capabilities: ${JSON.stringify(truncate(path, 100))} is not ${type} and is left out`)
    return isValid
  }
  const members = Object.entries(server).flatMap(([name, value]): Array<[string, unknown]> => {
    const types = Object.hasOwn(serverMembers, name) ? serverMembers[name] : undefined
    if (types === undefined) return [[name, value]]
    if (!check(isObject(value), name, 'an object') || !isObject(value)) return []
    const valid = Object.entries(value).filter(([member, each]) => {
      const type = Object.hasOwn(types, member) ? types[member] : types['*']
      if (type === undefined) return true
      return type === 'object'
        ? check(isObject(each), `${name}.${member}`, 'an object')
        : check(typeof each === 'boolean', `${name}.${member}`, 'a boolean')
    })
    return [[name, Object.fromEntries(valid)]]
  })
  const capabilities = Object.fromEntries(members)
  return { capabilities, problems }
}

const listCapabilities = ['tools', 'prompts', 'resources', 'events'] as const

/** Capabilities as a route declares them. Lists have `listChanged`: the gateway's settings change them as well. */
export function routeCapabilities (server: ServerCapabilities): ServerCapabilities {
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
 * The capabilities of a route with several upstreams: those that any of them has, except `experimental`, which makes
 * sense with a single upstream only.
 */
export function mergeCapabilities (servers: ServerCapabilities[]): ServerCapabilities {
  const result: ServerCapabilities = {}
  for (const server of servers) {
    for (const name of ['tools', 'prompts', 'resources', 'logging', 'completions', 'tasks', 'events', 'extensions']) {
      const own = server[name]
      if (isObject(own)) result[name] = mergeMembers(result[name], own)
    }
  }
  return routeCapabilities(result)
}

/** The members of two capabilities. What one of two can (`true`), both together can; the settings of extensions too. */
function mergeMembers (one: unknown, other: Capabilities): Capabilities {
  if (!isObject(one)) return other
  const merged = Object.entries({ ...one, ...other }).map(([name, value]) => {
    const former = Object.hasOwn(one, name) ? one[name] : undefined
    return [name, former === true ? true : isObject(value) ? mergeMembers(former, value) : value]
  })
  return Object.fromEntries(merged) as Capabilities
}
