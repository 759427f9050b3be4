import { UpstreamError } from '../../../protocol/errors.ts'
import type { AuthorizationSource } from '../../../protocol/transports/authorization.ts'
import { HttpTransport } from '../../../protocol/transports/http.ts'
import type { PrintedLine } from '../../../protocol/transports/printed-line.ts'
import { SseTransport } from '../../../protocol/transports/sse.ts'
import type { ProcessUser } from '../../../protocol/transports/process-user.ts'
import { StdioTransport } from '../../../protocol/transports/stdio.ts'
import type { Transport } from '../../../protocol/transports/transport.ts'
import type { MessagePace } from '../../../protocol/transports/valve.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import { memory } from '../../base/limits/index.ts'
import { causeOf, type Outbound, reachOf } from '../../base/outbound/index.ts'
import { isMask } from '../../base/secrets/index.ts'
import { childEnvironment, type Install } from './environment.ts'
import type { Passed } from './passthrough.ts'
import { isHeaderName } from '../openapi/headers.ts'
import { OpenApiTransport } from '../openapi/transport.ts'
import { launcher } from '../launcher/launcher.ts'
import type { SharedApi } from '../openapi/api.ts'
import type { ProcessEnvironment } from './variables.ts'

export type TransportKind = 'stdio' | 'sse' | 'streamable-http' | 'openapi'

/** The transports to try, in order: a `url` without a type is tried as streamable HTTP, then as SSE. */
export function transportKinds ({ type, command }: ServerConfig): TransportKind[] {
  if (type !== undefined) return [type]
  return command !== undefined ? ['stdio'] : ['streamable-http', 'sse']
}

export const isRemote = (config: ServerConfig): boolean => transportKinds(config)[0] !== 'stdio'

export interface TransportDeps {
  outbound: Outbound
  /** The gateway's own environment: children get parts of it, and variables are filled in from it. */
  environment: ProcessEnvironment
  /** The user that children run as; undefined: the gateway's own. */
  childUser?: ProcessUser
  /** Why a stdio server cannot be started as it is configured, as a clause; undefined: nothing is known to be wrong. */
  problemOf?: (config: ServerConfig) => Promise<string | undefined>
  /** The package indexes for children, by the current settings. */
  install?: () => Install | undefined
  /** Whether a value holds a credential of this gateway's. */
  isOurs?: (value: string) => boolean
  /** Called for each line that a child prints which is no message. */
  onLine: (line: PrintedLine) => void
  /** Removes the secrets of the config from a text. */
  redact?: (text: string) => string
  /** Shared by all connections to one server of type `openapi`. */
  sharedApi: SharedApi
  /** How much of what the server sends unasked is dealt with. Default: without bounds. */
  pace?: MessagePace
}

interface ConnectionDeps extends TransportDeps {
  warn: (sentence: string) => void
  /** Whether its process gives way to others; default: false. */
  yields?: boolean
}

/**
 * A transport for one connection to a server, not yet started.
 * @param config with its variables filled in
 * @param passed gives the current headers of the client that the connection is for; undefined: it is for no single client
 * @param authorization gives the header of a login; undefined: the gateway does not log in there
 * @throws UpstreamError refused, when the config is not valid
 */
export function makeTransport (
  kind: TransportKind,
  config: ServerConfig,
  { outbound, environment, childUser, install, isOurs, onLine, redact, sharedApi, pace, warn, yields }: ConnectionDeps,
  passed?: () => Passed | undefined,
  authorization?: AuthorizationSource
): Transport {
  // Whoever stored the server causes what no client has asked for.
  const reach = reachOf(config)
  const reading = { meter: memory, pace, owner: causeOf(reach) }
  if (kind === 'stdio') {
    return new StdioTransport({
      command: config.command ?? '',
      args: config.args ?? [],
      env: childEnvironment(config, childUser ? environmentOf(childUser, environment) : environment, install?.() ?? {}),
      cwd: config.cwd,
      user: childUser,
      startProcess: async (order) => await launcher.start(order, warn),
      yields,
      onLine,
      redact,
      ...reading
    })
  }
  if (kind === 'openapi') return new OpenApiTransport({ config, outbound, sharedApi, passed, isOurs, warn, owner: reading.owner })
  if (config.url === undefined || !URL.canParse(config.url)) {
    throw new UpstreamError('refused', '"url" is not an absolute http or https address once its variables are filled in')
  }
  const url = new URL(config.url)
  const headers = lowerCased(config.headers ?? {})
  for (const [name, value] of Object.entries(headers)) {
    if (!isHeaderName(name)) throw new UpstreamError('refused', `${JSON.stringify(name)} in "headers" is not a valid header name`)
    if (ofTheConnection.has(name)) {
      throw new UpstreamError('refused', `${JSON.stringify(name)} in "headers" is for the connection, which the gateway makes; remove it`)
    }
    if (/[^\t\x20-\x7e\x80-\xff]/.test(value)) {
      const problem = isMask(value)
        ? 'is a mask, not the secret itself: write its value there'
        : 'holds a character that headers cannot hold'
      throw new UpstreamError('refused', `the value of ${JSON.stringify(name)} in "headers" ${problem}`)
    }
  }
  const dispatcher = outbound.dispatcher(url, reach)
  // An SSE connection sends the headers of its opening with each POST, too.
  return kind === 'sse'
    ? new SseTransport({ url, headers: { ...passed?.(), ...headers }, dispatcher, authorization, ...reading })
    : new HttpTransport({ url, headers, passed, dispatcher, authorization, ...reading })
}

/** The gateway's environment, with the home and the name of another user. */
const environmentOf = ({ home, name }: ProcessUser, environment: ProcessEnvironment): ProcessEnvironment =>
  ({ ...environment, HOME: home, USER: name, LOGNAME: name, TMPDIR: undefined })

/** Headers of a connection or of one message, which a request cannot have from elsewhere. */
const ofTheConnection = new Set(['connection', 'content-length', 'expect', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade'])

const lowerCased = (headers: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
