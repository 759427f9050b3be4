import type { FastifyInstance } from 'fastify'
import { escapeInvisible } from '../../plugins/extensions/index.ts'

/** The state of a server as shown on pages. */
type State = 'connected' | 'connecting' | 'failed' | 'login' | 'off'
export const states: readonly State[] = ['connected', 'connecting', 'failed', 'login', 'off']

/** A button: a link, or a form that it submits. */
interface Action {
  readonly label: string
  readonly href: string
  readonly method: 'get' | 'post'
  readonly fields?: Readonly<Record<string, string>>
  readonly isDanger?: boolean
  readonly icon?: string
}

/** A server in a response of the management API. */
export type ServerState = ReturnType<FastifyInstance['servers']['get']>

export function stateOf ({ status, error, config }: ServerState): State {
  switch (status) {
    case 'connected': return 'connected'
    case 'connecting': return 'connecting'
    case 'oauth_required': return 'login'
    case 'disabled': return 'off'
    // A server that starts on demand is shown as connected while its process is not running.
    case 'disconnected': return error !== null ? 'failed' : config.startOnDemand === true ? 'connected' : 'connecting'
  }
}

/** Returns why a server is not connected, as a text for the page; undefined if there is no error. */
export function errorOf (server: ServerState): string | undefined {
  if (stateOf(server) !== 'login') return server.error ?? undefined
  return server.oauth ? 'It requires a login: choose “Log in”.' : server.error ?? loginRequiredText
}

const loginRequiredText = 'It requires a login.'

/** A server, or one that is not stored yet. */
type WithConfig = Pick<ServerState, 'config'>

/** Returns the command or address of a server, as far as it is visible to the user. */
export function targetOf ({ config: { command, args, url, openapi } }: WithConfig): string {
  if (typeof command === 'string') return [command, ...Array.isArray(args) ? args : []].join(' ')
  const described = (openapi as { url?: unknown } | undefined)?.url
  const address = url ?? described
  return typeof address === 'string' ? address : ''
}

export const transportOf = ({ config: { type, command, openapi } }: WithConfig): string =>
  typeof type === 'string'
    ? type
    : command !== undefined ? 'stdio' : openapi !== undefined ? 'openapi' : 'streamable-http'

/** Returns the URL of a server's page. @param base the path of the console */
export const serverPageUrl = (base: string, name: string): string => `${base}/servers/${encodeURIComponent(name)}`

/** Returns the button that can make a server work again, if any. @param manages whether the user may change it */
export function repairActionOf (base: string, server: ServerState, manages: boolean): Action | undefined {
  const { oauth, name } = server
  if (oauth) return { label: 'Log in', href: oauth.authorizationUrl, method: 'get', icon: 'log-in' }
  if (!manages) return undefined
  const page = serverPageUrl(base, name)
  switch (stateOf(server)) {
    case 'failed': return { label: 'Reload', href: `${page}/reload`, method: 'post', icon: 'refresh-cw' }
    case 'off':
      return { label: 'Turn on', href: `${page}/toggle`, method: 'post', fields: { enabled: 'true' }, icon: 'power' }
    default: return undefined
  }
}

/** One page of a list. */
interface ListPage<Item> {
  readonly items: readonly Item[]
  readonly pages: { from: number, to: number, total: number, previous?: string, next?: string }
}

/** Number of rows on a page. */
const pageSize = 50

/**
 * Returns the page of a list that a query selects.
 * @param path the path of the list, without query
 * @param query the filters, which the links to other pages keep, and `page`, from 1
 */
export function paginate<Item> (
  all: readonly Item[], path: string, { page: requested = '1', ...filters }: Readonly<Record<string, string>>
): ListPage<Item> {
  const last = Math.max(1, Math.ceil(all.length / pageSize))
  const page = Math.min(last, Math.max(1, Math.trunc(Number(requested)) || 1))
  const start = (page - 1) * pageSize
  const items = all.slice(start, start + pageSize)
  const at = (number: number): string => urlWithQuery(path, { ...filters, page: String(number) })
  return {
    items,
    pages: {
      from: all.length === 0 ? 0 : start + 1,
      to: start + items.length,
      total: all.length,
      ...page > 1 && { previous: at(page - 1) },
      ...page < last && { next: at(page + 1) }
    }
  }
}

/** Max length of a server-defined name in a table, in characters. */
const maxNameLength = 100

/** Returns a name that a server defines for display: truncated, with invisible characters as escapes. */
export const shortNameOf = (name: string): string =>
  escapeInvisible(name.length > maxNameLength ? `${name.slice(0, maxNameLength)}…` : name)

/** Returns a path with a query that contains the non-empty parameters. */
export function urlWithQuery (path: string, query: Readonly<Record<string, string | undefined>>): string {
  const set = Object.entries(query).filter((entry): entry is [string, string] => (entry[1] ?? '') !== '')
  return set.length === 0 ? path : `${path}?${new URLSearchParams(set).toString()}`
}
