import { HttpTransport } from '../../protocol/transports/http.ts'
import { SseTransport } from '../../protocol/transports/sse.ts'
import { StdioTransport } from '../../protocol/transports/stdio.ts'
import type { Transport } from '../../protocol/transports/transport.ts'
import type { ServerConfig } from '../../schemas/server.ts'
import type { Outbound } from '../outbound/index.ts'

export type TransportKind = 'stdio' | 'sse' | 'streamable-http'

/** The transports to try, in order: without a type, a `url` is streamable HTTP with fall-back to SSE. */
export function transportKinds ({ type, command }: ServerConfig): TransportKind[] {
  if (type === 'stdio' || type === 'sse' || type === 'streamable-http') return [type]
  return command !== undefined ? ['stdio'] : ['streamable-http', 'sse']
}

export const isRemote = (config: ServerConfig): boolean => transportKinds(config)[0] !== 'stdio'

/** What of our environment a child is given: enough to run, none of our secrets. */
const inherited = ['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'LC_ALL', 'LC_CTYPE', 'TZ', 'TMPDIR', 'TERM', 'SSL_CERT_FILE', 'NODE_EXTRA_CA_CERTS', 'SystemRoot', 'APPDATA', 'PATHEXT']

export interface TransportDeps {
  outbound: Outbound
  /** Our own environment, to pass on what a child needs of it. */
  environment: Readonly<Record<string, string | undefined>>
  /** A line that a child printed to nobody. */
  onLine: (line: string) => void
}

/** A transport for one connection to a server, not yet started. */
export function makeTransport (kind: TransportKind, config: ServerConfig, { outbound, environment, onLine }: TransportDeps): Transport {
  if (kind === 'stdio') {
    const env: Record<string, string> = {}
    for (const name of inherited) {
      const value = environment[name]
      if (value !== undefined) env[name] = value
    }
    return new StdioTransport({ command: config.command ?? '', args: config.args ?? [], env: { ...env, ...config.env }, cwd: config.cwd, onLine })
  }
  const url = new URL(config.url ?? '')
  const options = { url, headers: lowerCased(config.headers ?? {}), dispatcher: outbound.dispatcher(url) }
  return kind === 'sse' ? new SseTransport(options) : new HttpTransport(options)
}

const lowerCased = (headers: Record<string, string>): Record<string, string> => Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
