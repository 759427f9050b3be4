import { hash } from 'node:crypto'
import { isObject } from './json.ts'

export type Capabilities = Record<string, unknown>
export type ClientCapabilities = Capabilities
export type ServerCapabilities = Capabilities

/** What a client must have declared before an upstream may ask it something. */
const askable = ['sampling', 'elicitation', 'roots'] as const

/** True for a client that can be asked things. */
export const canBeAsked = (client: ClientCapabilities): boolean => askable.some((name) => isObject(client[name]))

/** The capability that a question needs, if it is one we know. */
const needs = new Map<string, typeof askable[number]>([
  ['sampling/createMessage', 'sampling'],
  ['elicitation/create', 'elicitation'],
  ['roots/list', 'roots']
])

/** True when this client may be asked this: declared, or a question of a kind that we do not know. */
export function mayBeAsked (client: ClientCapabilities, method: string): boolean {
  const need = needs.get(method)
  return need === undefined || isObject(client[need])
}

/**
 * The capabilities that one client's own link shows its upstream: what the client has and the gateway can carry.
 * All of it is carried but 2025-11-25 tasks towards the client, which live and die with one connection.
 */
export function bridged (client: ClientCapabilities): ClientCapabilities {
  const { tasks: _, ...rest } = client
  return rest
}

const longestClass = 512
const classes = new WeakMap<ClientCapabilities, string>()

const known: ReadonlyArray<readonly [string, readonly string[]]> = [
  ['sampling', ['context', 'tools']],
  ['elicitation', ['form', 'url']],
  ['roots', ['listChanged']]
]
const apps = 'io.modelcontextprotocol/ui'

/**
 * What of a client's capabilities a connection shows that several clients share: what an upstream acts upon, and nothing that
 * would make each client one of a kind.
 */
export function shareable (client: ClientCapabilities): ClientCapabilities {
  const result: ClientCapabilities = {}
  for (const [name, members] of known) {
    const own = client[name]
    if (isObject(own)) {
      result[name] = Object.fromEntries(members.flatMap((member) => (own[member] === undefined ? [] : [[member, own[member]]])))
    }
  }
  if (isObject(client.extensions) && client.extensions[apps] !== undefined) result.extensions = { [apps]: client.extensions[apps] }
  return result
}

/** A text that is equal for clients that an upstream cannot tell apart by what they can share. The object must not change. */
export function classOf (client: ClientCapabilities): string {
  const known = classes.get(client)
  if (known !== undefined) return known
  const sorted = (value: unknown): unknown => isObject(value)
    ? Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]))
    : Array.isArray(value) ? value.map(sorted) : value
  const whole = JSON.stringify(sorted(shareable(client)))
  // It is a key in many places, and a client may declare as much as fits into a request.
  const text = whole.length > longestClass ? `{"sha256":"${hash('sha256', whole, 'hex')}"}` : whole
  classes.set(client, text)
  return text
}

/** The class of clients that declare nothing; also what the gateway itself is to an upstream. */
export const plainClass = '{}'

const lists = ['tools', 'prompts', 'resources'] as const

/** The upstream's capabilities as one route shows them: the gateway can always tell of a changed list, since its settings can change. */
export function shown (server: ServerCapabilities): ServerCapabilities {
  const result = { ...server }
  for (const name of lists) {
    const own = server[name]
    if (isObject(own)) result[name] = { ...own, listChanged: true }
  }
  return result
}

/** What several upstreams have between them, for a route that merges them. What needs one upstream only (tasks, experimental) is left out. */
export function union (servers: ServerCapabilities[]): ServerCapabilities {
  const result: ServerCapabilities = {}
  for (const server of servers) {
    for (const name of ['tools', 'prompts', 'resources', 'logging', 'completions', 'extensions']) {
      const own = server[name]
      if (isObject(own)) result[name] = { ...(isObject(result[name]) ? result[name] : {}), ...own }
    }
  }
  if (servers.some((server) => isObject(server.resources) && server.resources.subscribe === true) && isObject(result.resources)) {
    result.resources = { ...result.resources, subscribe: true }
  }
  return shown(result)
}
