import { UpstreamError } from '../../../protocol/errors.ts'
import type { AuthorizationSource } from '../../../protocol/transports/authorization.ts'
import { HttpTransport } from '../../../protocol/transports/http.ts'
import type { PrintedLine } from '../../../protocol/transports/printed-line.ts'
import { SseTransport } from '../../../protocol/transports/sse.ts'
import type { ProcessUser, StartProcess } from '../../../protocol/transports/started-process.ts'
import { StdioTransport } from '../../../protocol/transports/stdio.ts'
import type { MemoryMeter, Transport } from '../../../protocol/transports/transport.ts'
import type { MessageRateLimiter } from '../../../protocol/transports/valve.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import { transports, type TransportType } from '../../../schemas/transports.ts'
import { hasUserVariables } from '../../../schemas/user-variables.ts'
import { memoryBudget } from '../../base/limits/index.ts'
import { serverMemoryOwner, type Outbound, outboundAccessOf } from '../../base/outbound/index.ts'
import { containsMask } from '../../base/secrets/index.ts'
import { childEnvironment, type PackageIndexes, type ProcessEnvironment } from './environment.ts'
import type { PassedHeaders } from './passthrough.ts'
import { isHeaderName } from '../openapi/http-syntax.ts'
import { SharedApi } from '../openapi/api.ts'

/**
 * Returns the transports to try, in order: a `url` without a type is tried as streamable HTTP and as SSE.
 * @param last the transport of the last successful connection, which is tried first
 */
export function transportTypesToTry (
  { type, command }: Pick<ServerConfig, 'type' | 'command' | 'url'>, last?: TransportType
): TransportType[] {
  if (type !== undefined) return [type]
  if (command !== undefined) return ['stdio']
  return last === 'sse' ? ['sse', 'streamable-http'] : ['streamable-http', 'sse']
}

const traitsOf = (config: Pick<ServerConfig, 'type' | 'command' | 'url'>): typeof transports[TransportType] =>
  transports[transportTypesToTry(config)[0] ?? 'stdio']

/** Whether a server is reached over HTTP, rather than being a local process. */
export const isRemote = (config: ServerConfig): boolean => traitsOf(config).locatedBy !== 'command'

/** Whether a server is an MCP server at a URL, at which the gateway can log in; false for servers of type `openapi`. */
export const isRemoteMcpServer = (config: ServerConfig): boolean => traitsOf(config).locatedBy === 'address'

export interface TransportDeps {
  outbound: Outbound
  /**
   * The gateway's own environment: stdio servers inherit some variables, and `${NAME}` in configs is expanded from it.
   */
  environment: ProcessEnvironment
  /** The user as whom the processes of stdio servers run; undefined for the gateway's own user. */
  childUser?: ProcessUser
  /** Starts processes. Default: `startChild`, which records nothing. */
  startProcess?: StartProcess
  /** Returns why a stdio server cannot be started with its config, as a clause; undefined if no problem is known. */
  problemOf?: (config: ServerConfig) => Promise<string | undefined>
  /** Returns the package indexes for the package managers of stdio servers, from the current settings. */
  install?: () => PackageIndexes | undefined
  /** Whether a value contains a credential of this gateway, which is never sent to a server. */
  isOwnCredential?: (value: string) => boolean
  /** Called for each line that the server's process prints to stderr, or that is no MCP message on stdout. */
  onLine: (line: PrintedLine) => void
  /** Masks the secrets of the config in a text. */
  redact?: (text: string) => string
  /** The API description and credentials that the connections to one server of type `openapi` share. */
  sharedApi: SharedApi
  /** Limits the server's unsolicited messages. Default: no limit. */
  pace?: MessageRateLimiter
}

interface ConnectionDeps extends TransportDeps {
  warn: (sentence: string) => void
}

/** The parameters from which a transport is created. */
interface TransportInput {
  /** The config, with its variables expanded. */
  readonly config: ServerConfig
  readonly deps: ConnectionDeps
  /** Returns the current passed-on headers of the connection's client; undefined if the server gets none. */
  readonly passed?: (() => PassedHeaders | undefined) | undefined
  /** Supplies the `Authorization` header of a login; undefined if the gateway does not log in at the server. */
  readonly authorization?: AuthorizationSource | undefined
  /**
   * Limits the memory and rate of the server's messages. `owner`: the owner whose memory is used for messages that no
   * client caused.
   */
  readonly reading: { meter: MemoryMeter, pace: MessageRateLimiter | undefined, owner: string }
}

type MakeTransport = (input: TransportInput) => Transport | Promise<Transport>

/** The transport factory for each type of `schemas/transports.ts`. */
const transportFactories: Readonly<Record<TransportType, MakeTransport>> = {
  stdio: makeStdio,
  sse (input) {
    const { headers, ...options } = httpOptions(input)
    // These headers are sent with the opening request and with each POST. Headers of the config take precedence.
    return new SseTransport({ ...options, headers: { ...input.passed?.(), ...headers } })
  },
  'streamable-http': (input) => new HttpTransport({ ...httpOptions(input), clientHeaders: input.passed }),
  async openapi ({ config, deps: { outbound, sharedApi, isOwnCredential, warn }, passed, reading: { owner } }) {
    const { OpenApiTransport } = await import('../openapi/transport.ts')
    return new OpenApiTransport({
      config,
      outbound,
      // With user variables, the description is read with the values of the link's user, so it is not shared.
      sharedApi: hasUserVariables(config) ? new SharedApi() : sharedApi,
      isOwnCredential,
      clientHeaders: passed,
      warn,
      owner
    })
  }
}

/** Creates a transport for one connection without starting it. @throws UpstreamError `refused` for an invalid config */
export function makeTransport (
  type: TransportType, { config, deps, passed, authorization }: Omit<TransportInput, 'reading'>
): Transport | Promise<Transport> {
  // The memory of messages that no client has caused counts against the server's owner.
  const reading = { meter: memoryBudget, pace: deps.pace, owner: serverMemoryOwner(outboundAccessOf(config)) }
  return transportFactories[type]({ config, deps, passed, authorization, reading })
}

function makeStdio ({ config, deps, reading }: TransportInput): Transport {
  const { environment, childUser, startProcess, install, onLine, redact } = deps
  return new StdioTransport({
    child: {
      command: config.command ?? '',
      args: config.args ?? [],
      env: childEnvironment(
        config, childUser ? userEnvironment(childUser, environment) : environment, install?.() ?? {}
      ),
      cwd: config.cwd,
      user: childUser
    },
    startProcess,
    onLine,
    redact,
    reading
  })
}

/** Returns the options that both HTTP transports share. @throws UpstreamError `refused` for an invalid URL or header */
function httpOptions ({ config, deps: { outbound }, authorization, reading }: TransportInput) {
  if (config.url === undefined || !URL.canParse(config.url)) {
    throw new UpstreamError(
      'refused', '"url" is not an absolute http or https address after its variables are expanded'
    )
  }
  const url = new URL(config.url)
  const headers = lowerCased(config.headers ?? {})
  for (const [name, value] of Object.entries(headers)) checkHeader(name, value)
  return { url, headers, dispatcher: outbound.dispatcher(url, outboundAccessOf(config)), authorization, reading }
}

/** Checks a configured header. @param name in lower case @throws UpstreamError `refused` with the problem */
function checkHeader (name: string, value: string): void {
  const refuse = (problem: string): never => { throw new UpstreamError('refused', problem) }
  if (!isHeaderName(name)) refuse(`${JSON.stringify(name)} in "headers" is not a valid header name`)
  if (connectionHeaders.has(name)) {
    refuse(`${JSON.stringify(name)} in "headers" concerns the connection, which the gateway manages; remove it`)
  }
  if (!/[^\t\x20-\x7e\x80-\xff]/.test(value)) return
  const problem = containsMask(value)
    ? 'is a mask, not the secret itself: write its value there'
    : 'contains a character that is not allowed in a header'
  refuse(`the value of ${JSON.stringify(name)} in "headers" ${problem}`)
}

/** Returns the gateway's environment with the home directory and the name of another user, without TMPDIR. */
const userEnvironment = ({ home, name }: ProcessUser, environment: ProcessEnvironment): ProcessEnvironment =>
  ({ ...environment, HOME: home, USER: name, LOGNAME: name, TMPDIR: undefined })

/** Headers of the connection or of message framing, which a config cannot set. */
const connectionHeaders =
  new Set(['connection', 'content-length', 'expect', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade'])

const lowerCased = (headers: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
