import type { FastifyInstance } from 'fastify'

/** The state of a server, as shown on pages. `login`: it requires a login; `off`: it is disabled. */
type ServerState = 'connected' | 'connecting' | 'failed' | 'login' | 'off'
export const serverStates: readonly ServerState[] = ['connected', 'connecting', 'failed', 'login', 'off']

/** A button. With the method `get`, it is a link; with `post`, it submits a form with hidden fields. */
interface Action {
  readonly label: string
  readonly href: string
  readonly method: 'get' | 'post'
  readonly fields?: Readonly<Record<string, string>>
  readonly isDanger?: boolean
  readonly icon?: string
}

/** A server in a response of the management API. */
export type ShownServer = ReturnType<FastifyInstance['servers']['get']>

/** Returns the state in which pages show a server. */
export function stateOf ({ status, error, config }: ShownServer): ServerState {
  switch (status) {
    case 'connected': return 'connected'
    case 'connecting': return 'connecting'
    case 'oauth_required': return 'login'
    case 'disabled': return 'off'
    // A server that starts on demand is shown as connected even while its process is not running.
    case 'disconnected': return error !== null ? 'failed' : config.startOnDemand === true ? 'connected' : 'connecting'
  }
}

/** Returns a text that tells why a server is not connected; undefined if there is no error. */
export function connectionErrorText (server: ShownServer): string | undefined {
  if (stateOf(server) !== 'login') return server.error ?? undefined
  return server.oauth ? 'It requires a login: choose “Log in”.' : server.error ?? loginRequiredText
}

const loginRequiredText = 'It requires a login.'

/** A stored server, or only the config of a server that is not stored yet. */
type WithConfig = Pick<ShownServer, 'config'>

/** Returns the command line or the address of a server; '' if the config, as the user may see it, contains neither. */
export function commandOrAddressOf ({ config: { command, args, url, openapi } }: WithConfig): string {
  if (typeof command === 'string') return [command, ...Array.isArray(args) ? args : []].join(' ')
  const described = (openapi as { url?: unknown } | undefined)?.url
  const address = url ?? described
  return typeof address === 'string' ? address : ''
}

/** Returns the transport of a server: the `type` of its config, otherwise the transport that the config implies. */
export const transportOf = ({ config: { type, command, openapi } }: WithConfig): string =>
  typeof type === 'string'
    ? type
    : command !== undefined ? 'stdio' : openapi !== undefined ? 'openapi' : 'streamable-http'

/** Returns the URL of a server's page. @param base the path of the console */
export const serverPageUrl = (base: string, name: string): string => `${base}/servers/${encodeURIComponent(name)}`

/**
 * Returns the button that may make a server work again, if there is one.
 * @param manages whether the user may change the server
 */
export function repairActionOf (base: string, server: ShownServer, manages: boolean): Action | undefined {
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
