import { UpstreamError } from '../../../protocol/errors.ts'
import { HttpTransport } from '../../../protocol/transports/http.ts'
import { SseTransport } from '../../../protocol/transports/sse.ts'
import { StdioTransport } from '../../../protocol/transports/stdio.ts'
import type { Transport } from '../../../protocol/transports/transport.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import { reachOf, type Outbound } from '../../outbound/outbound.ts'
import { childEnvironment, type Install } from './environment.ts'
import type { Passed } from './passthrough.ts'
import { OpenApiTransport } from '../openapi/transport.ts'
import type { SharedApi } from '../openapi/api.ts'
import type { Environment } from './variables.ts'

export type TransportKind = 'stdio' | 'sse' | 'streamable-http' | 'openapi'

/** The transports to try, in order: without a type, a `url` is streamable HTTP with fall-back to SSE. */
export function transportKinds ({ type, command }: ServerConfig): TransportKind[] {
  if (type !== undefined) return [type]
  return command !== undefined ? ['stdio'] : ['streamable-http', 'sse']
}

export const isRemote = (config: ServerConfig): boolean => transportKinds(config)[0] !== 'stdio'

export interface TransportDeps {
  outbound: Outbound
  /** Our own environment, to pass on what a child needs of it, and to fill in variables from. */
  environment: Environment
  /** Where children get their packages, as the settings say now. */
  install?: () => Install | undefined
  /** A line that a child printed to nobody. */
  onLine: (line: string) => void
  /** Takes the secrets of the config out of a text. */
  redact?: (text: string) => string
  /** What all connections to one server of type `openapi` share. */
  sharedApi: SharedApi
}

/**
 * A transport for one connection to a server, not yet started.
 * @param config with its variables filled in
 * @param passed headers of the client that the connection is for, as they are now; undefined: it is for none
 * @throws UpstreamError refused: it cannot be reached as it is configured
 */
export function makeTransport (
  kind: TransportKind,
  config: ServerConfig,
  { outbound, environment, install, onLine, redact, sharedApi, warn }: TransportDeps & { warn: (sentence: string) => void },
  passed?: () => Passed | undefined
): Transport {
  if (kind === 'stdio') {
    return new StdioTransport({
      command: config.command ?? '',
      args: config.args ?? [],
      env: childEnvironment(config, environment, install?.() ?? {}),
      cwd: config.cwd,
      onLine,
      redact
    })
  }
  if (kind === 'openapi') return new OpenApiTransport({ config, outbound, sharedApi, passed, warn })
  if (config.url === undefined || !URL.canParse(config.url)) {
    throw new UpstreamError('refused', '"url" is not an absolute http or https address once its variables are filled in')
  }
  const url = new URL(config.url)
  const headers = lowerCased(config.headers ?? {})
  for (const [name, value] of Object.entries(headers)) {
    if (/[^\t\x20-\x7e\x80-\xff]/.test(value)) {
      throw new UpstreamError('refused', `the value of ${JSON.stringify(name)} in "headers" holds a character that headers cannot hold`)
    }
  }
  const dispatcher = outbound.dispatcher(url, reachOf(config))
  // An event stream is opened with its headers once; the addresses it names are asked with the same.
  return kind === 'sse'
    ? new SseTransport({ url, headers: { ...passed?.(), ...headers }, dispatcher })
    : new HttpTransport({ url, headers, passed, dispatcher })
}

const lowerCased = (headers: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
