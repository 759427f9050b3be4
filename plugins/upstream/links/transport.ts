import { UpstreamError } from '../../../protocol/errors.ts'
import type { AuthorizationSource } from '../../../protocol/transports/authorization.ts'
import { HttpTransport } from '../../../protocol/transports/http.ts'
import type { PrintedLine } from '../../../protocol/transports/printed-line.ts'
import { SseTransport } from '../../../protocol/transports/sse.ts'
import type { ProcessUser, StartProcess } from '../../../protocol/transports/started-process.ts'
import { StdioTransport } from '../../../protocol/transports/stdio.ts'
import type { MemoryMeter, Transport } from '../../../protocol/transports/transport.ts'
import type { MessagePace } from '../../../protocol/transports/valve.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import { transports, type TransportType } from '../../../schemas/transports.ts'
import { memory } from '../../base/limits/index.ts'
import { causeOf, type Outbound, reachOf } from '../../base/outbound/index.ts'
import { isMask } from '../../base/secrets/index.ts'
import { childEnvironment, type Install, type ProcessEnvironment } from './environment.ts'
import type { Passed } from './passthrough.ts'
import { isHeaderName } from '../openapi/http-syntax.ts'
import { OpenApiTransport } from '../openapi/transport.ts'
import type { SharedApi } from '../openapi/api.ts'

/** The transports to try, in order: a `url` without a type is tried as streamable HTTP, then as SSE. */
export function transportKinds ({ type, command }: Pick<ServerConfig, 'type' | 'command' | 'url'>): TransportType[] {
  if (type !== undefined) return [type]
  return command !== undefined ? ['stdio'] : ['streamable-http', 'sse']
}

const traitsOf = (config: Pick<ServerConfig, 'type' | 'command' | 'url'>): typeof transports[TransportType] =>
  transports[transportKinds(config)[0] ?? 'stdio']

/**
 * Whether a server is no process of this machine: it gets HTTP headers, is pinged, and is opened again when it is lost.
 */
export const isRemote = (config: ServerConfig): boolean => traitsOf(config).locatedBy !== 'command'

/** Whether a server is an MCP server at an address, so that the gateway may log in there. */
export const isAddress = (config: ServerConfig): boolean => traitsOf(config).locatedBy === 'address'

export interface TransportDeps {
  outbound: Outbound
  /** The gateway's own environment: children get parts of it, and variables are filled in from it. */
  environment: ProcessEnvironment
  /** The user that children run as; undefined: the gateway's own. */
  childUser?: ProcessUser
  /** Starts processes. Default: as children of this process. */
  startProcess?: StartProcess
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
}

/** What a transport is made of. */
interface Making {
  /** With its variables filled in. */
  readonly config: ServerConfig
  readonly deps: ConnectionDeps
  /** Gives the current headers of the client that the connection is for; undefined: it is for no single client. */
  readonly passed?: (() => Passed | undefined) | undefined
  /** Gives the header of a login; undefined: the gateway does not log in there. */
  readonly authorization?: AuthorizationSource | undefined
  /** How messages of the server are read and counted. */
  readonly reading: { meter: MemoryMeter, pace: MessagePace | undefined, owner: string }
}

/** Makes a transport that is not yet started. @throws UpstreamError refused, when the config is not valid */
type MakeTransport = (making: Making) => Transport

/** What makes the connections of each type of `schemas/transports.ts`. */
const makers: Readonly<Record<TransportType, MakeTransport>> = {
  stdio: makeStdio,
  sse (making) {
    const { headers, ...options } = httpOptions(making)
    // The headers of the opening are sent with each POST as well.
    return new SseTransport({ ...options, headers: { ...making.passed?.(), ...headers } })
  },
  'streamable-http': (making) => new HttpTransport({ ...httpOptions(making), passed: making.passed }),
  openapi: ({ config, deps: { outbound, sharedApi, isOurs, warn }, passed, reading: { owner } }) =>
    new OpenApiTransport({ config, outbound, sharedApi, isOurs, passed, warn, owner })
}

/**
 * A transport for one connection to a server, not yet started.
 * @throws UpstreamError refused, when the config is not valid
 */
export function makeTransport (
  type: TransportType, { config, deps, passed, authorization }: Omit<Making, 'reading'>
): Transport {
  // What no client has asked for is counted to the one who stored the server.
  const reading = { meter: memory, pace: deps.pace, owner: causeOf(reachOf(config)) }
  return makers[type]({ config, deps, passed, authorization, reading })
}

function makeStdio ({ config, deps, reading }: Making): Transport {
  const { environment, childUser, startProcess, install, onLine, redact } = deps
  return new StdioTransport({
    child: {
      command: config.command ?? '',
      args: config.args ?? [],
      env: childEnvironment(config, childUser ? environmentOf(childUser, environment) : environment, install?.() ?? {}),
      cwd: config.cwd,
      user: childUser
    },
    startProcess,
    onLine,
    redact,
    reading
  })
}

/** The options that the transports over HTTP share. */
function httpOptions ({ config, deps: { outbound }, authorization, reading }: Making) {
  if (config.url === undefined || !URL.canParse(config.url)) {
    throw new UpstreamError('refused', '"url" is not an absolute http or https address once its variables are ' +
      'filled in')
  }
  const url = new URL(config.url)
  const headers = lowerCased(config.headers ?? {})
  for (const [name, value] of Object.entries(headers)) checkHeader(name, value)
  return { url, headers, dispatcher: outbound.dispatcher(url, reachOf(config)), authorization, reading }
}

/** @throws UpstreamError */
function checkHeader (name: string, value: string): void {
  const refuse = (problem: string): never => { throw new UpstreamError('refused', problem) }
  if (!isHeaderName(name)) refuse(`${JSON.stringify(name)} in "headers" is not a valid header name`)
  if (ofTheConnection.has(name)) {
    refuse(`${JSON.stringify(name)} in "headers" is for the connection, which the gateway makes; remove it`)
  }
  if (!/[^\t\x20-\x7e\x80-\xff]/.test(value)) return
  const problem = isMask(value)
    ? 'is a mask, not the secret itself: write its value there'
    : 'holds a character that headers cannot hold'
  refuse(`the value of ${JSON.stringify(name)} in "headers" ${problem}`)
}

/** The gateway's environment, with the home and the name of another user. */
const environmentOf = ({ home, name }: ProcessUser, environment: ProcessEnvironment): ProcessEnvironment =>
  ({ ...environment, HOME: home, USER: name, LOGNAME: name, TMPDIR: undefined })

/** Headers of a connection or of one message, which a request cannot have from elsewhere. */
const ofTheConnection =
  new Set(['connection', 'content-length', 'expect', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade'])

const lowerCased = (headers: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
