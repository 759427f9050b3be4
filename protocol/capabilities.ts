import { hash } from 'node:crypto'
import { code, RpcError } from './errors.ts'
import { isObject } from './json.ts'
import { truncate } from './text.ts'

type Capabilities = Record<string, unknown>
export type ClientCapabilities = Capabilities
export type ServerCapabilities = Capabilities

/** The client capabilities that let an upstream ask the client something. */
const askable = ['sampling', 'elicitation', 'roots'] as const

/** True for a client that declares at least one of them. */
export const canBeAsked = (client: ClientCapabilities): boolean => askable.some((name) => isObject(client[name]))

/** The requests that a server may send to a client. */
export interface AskedFor { readonly method: string, readonly params: Readonly<Record<string, unknown>> }

/** The capability that each known question needs. */
const needs = new Map<string, typeof askable[number]>([
  ['sampling/createMessage', 'sampling'],
  ['elicitation/create', 'elicitation'],
  ['roots/list', 'roots']
])

/**
 * Checks that a client declares what a question needs, its mode and its parts included. Questions of unknown methods
 * may always be asked.
 * @throws RpcError to answer the server with
 */
export function requireClientCapability (client: ClientCapabilities, { method, params }: AskedFor): void {
  const need = needs.get(method)
  if (need === undefined) return
  const own = client[need]
  if (!isObject(own)) throw new RpcError(code.methodNotFound, `The client does not support ${method}`)
  if (need === 'elicitation') {
    const mode = params.mode === 'url' ? 'url' : 'form'
    // No mode at all stands for forms.
    const can = own[mode] !== undefined || (mode === 'form' && own.url === undefined)
    if (!can) throw new RpcError(code.invalidParams, `The client does not support elicitation of mode ${mode}`)
  }
  if (need === 'sampling' && params.tools !== undefined && own.tools === undefined) {
    throw new RpcError(code.invalidParams, 'The client does not support sampling with tools')
  }
}

/** The extension "Tasks" of MCP 2026-07-28, which the gateway does not pass on: it is told to neither side. */
const tasksExtension = 'io.modelcontextprotocol/tasks'

/**
 * The same capabilities without what the gateway does not pass on. The object stays the same where there is no such
 * thing.
 */
function withoutTasksExtension (capabilities: Capabilities): Capabilities {
  const { extensions } = capabilities
  if (!isObject(extensions) || extensions[tasksExtension] === undefined) return capabilities
  const { [tasksExtension]: _, ...others } = extensions
  return { ...capabilities, extensions: others }
}

/**
 * The capabilities that the gateway declares on a link of one client: all that the client declares, except `tasks` (MCP
 * 2025-11-25, of the client): such tasks live no longer than one connection.
 */
export function bridged (client: ClientCapabilities): ClientCapabilities {
  const { tasks: _, ...rest } = withoutTasksExtension(client)
  return rest
}

const maxClassLength = 512
const classes = new WeakMap<ClientCapabilities, string>()

const known: ReadonlyArray<readonly [string, readonly string[]]> = [
  ['sampling', ['context', 'tools']],
  ['elicitation', ['form', 'url']],
  ['roots', ['listChanged']]
]
const apps = 'io.modelcontextprotocol/ui'

/**
 * The capabilities that the gateway declares on a link that several clients share: those of the client that upstreams
 * act upon. Others are left out, since they could make every client a class of its own.
 */
export function shareable (client: ClientCapabilities): ClientCapabilities {
  const result: ClientCapabilities = {}
  for (const [name, members] of known) {
    const own = client[name]
    if (isObject(own)) {
      result[name] =
        Object.fromEntries(members.flatMap((member) => (own[member] === undefined ? [] : [[member, own[member]]])))
    }
  }
  if (isObject(client.extensions) && client.extensions[apps] !== undefined) {
    result.extensions = { [apps]: client.extensions[apps] }
  }
  return result
}

/**
 * The capability class of a client: a text that is equal for clients with equal `shareable` capabilities. The object
 * must not change.
 */
export function classOf (client: ClientCapabilities): string {
  const known = classes.get(client)
  if (known !== undefined) return known
  const sorted = (value: unknown): unknown => isObject(value)
    ? Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]))
    : Array.isArray(value) ? value.map(sorted) : value
  const whole = JSON.stringify(sorted(shareable(client)))
  // The text is a key in many maps, and a client may declare as much as fits into a request.
  const text = whole.length > maxClassLength ? `{"sha256":"${hash('sha256', whole, 'hex')}"}` : whole
  classes.set(client, text)
  return text
}

/** The class of clients that declare nothing. The gateway's own links are of this class. */
export const plainClass = '{}'

/**
 * The JSON types of the members of each server capability in MCP's schema. `*` stands for every member that is not
 * named.
 */
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
 * An upstream's capabilities without those that are not what MCP says: a client that checks them could not connect to
 * any route that shows the server.
 * @returns `problems`: a sentence for each that is left out
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

const lists = ['tools', 'prompts', 'resources'] as const

/**
 * An upstream's capabilities as a route declares them. Each list has `listChanged`, since it also changes with the
 * gateway's settings.
 */
export function routeCapabilities (server: ServerCapabilities): ServerCapabilities {
  const result = { ...withoutTasksExtension(server) }
  for (const name of lists) {
    const own = server[name]
    if (isObject(own)) result[name] = { ...own, listChanged: true }
  }
  return result
}

/**
 * The capabilities of a route that merges several upstreams: those that any of them has. Capabilities that make sense
 * with a single upstream only (tasks, experimental) are left out.
 */
export function union (servers: ServerCapabilities[]): ServerCapabilities {
  const result: ServerCapabilities = {}
  for (const server of servers) {
    for (const name of ['tools', 'prompts', 'resources', 'logging', 'completions', 'extensions']) {
      const own = server[name]
      if (isObject(own)) result[name] = { ...(isObject(result[name]) ? result[name] : {}), ...own }
    }
  }
  if (servers.some((server) => isObject(server.resources) && server.resources.subscribe === true) &&
      isObject(result.resources)) {
    result.resources = { ...result.resources, subscribe: true }
  }
  return routeCapabilities(result)
}
