import { code, RpcError, UpstreamError } from '../../../protocol/errors.ts'
import { memberOf } from '../../../protocol/json.ts'
import { isLegacyVersion, latestLegacy } from '../../../protocol/legacy/versions.ts'
import { parseMessage, type Request } from '../../../protocol/message.ts'
import { transportLimits, type Receiver, type SendOptions, type Transport } from '../../../protocol/transports/transport.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import { limits } from '../../limits/index.ts'
import { reachOf, type Outbound } from '../../outbound/outbound.ts'
import { toHeader } from './headers.ts'
import type { CompiledDescription, OperationPlan } from './plan.ts'
import { ArgumentError } from './problems.ts'
import { toRequest, type ApiRequest } from './call/request.ts'
import type { SharedApi, Api } from './api.ts'
import { errorResult, toToolResult } from './call/result.ts'

export interface OpenApiTransportOptions {
  /** With its variables filled in. */
  config: ServerConfig
  outbound: Outbound
  sharedApi: SharedApi
  /** Headers of the client that the connection is for, where a request brings none of its own. */
  passed?: () => Readonly<Record<string, string>> | undefined
  warn: (sentence: string) => void
}

/** A call's own deadline ends it; an HTTP request has none beside it. In ms. */
const never = 2 ** 31 - 1

/**
 * A REST API as an MCP server in this process: its operations are tools. It takes and gives the messages that any server would, so
 * that whatever stands on links (catalogues, deadlines, cancelling, hooks) needs to know nothing of it.
 */
export class OpenApiTransport implements Transport {
  readonly #options: OpenApiTransportOptions
  readonly #open = new Map<number, AbortController>()
  #receiver: Receiver | undefined
  #api: Api | undefined
  #leave: () => void = () => {}
  /** What the list that is being read was begun with: its pages belong together. */
  #listed: CompiledDescription | undefined

  constructor (options: OpenApiTransportOptions) {
    this.#options = options
  }

  async start (receiver: Receiver): Promise<void> {
    const { config, outbound, sharedApi: rest, warn } = this.#options
    this.#receiver = receiver
    for (const [name, value] of Object.entries(config.headers ?? {})) toHeader(name, value)
    const { api, leave } = rest.acquire(config, outbound, warn, () => {
      this.#receiver?.message({ kind: 'notification', method: 'notifications/tools/list_changed', params: {}, paramsText: '{}' }, undefined)
    })
    this.#api = api
    this.#leave = leave
    this.#base(await api.description.current())
  }

  send (text: string, options?: SendOptions): void {
    const message = parseMessage(text, transportLimits.depth)
    if (Array.isArray(message) || message.kind !== 'request' || options?.id === undefined) return
    void this.#answer(options.id, message, options.headers)
  }

  drop (id: number): void {
    this.#open.get(id)?.abort()
    this.#open.delete(id)
  }

  async agreed (): Promise<void> {}

  async close (): Promise<void> {
    this.#receiver = undefined
    for (const id of [...this.#open.keys()]) this.drop(id)
    this.#leave()
  }

  async #answer (id: number, request: Request, headers: SendOptions['headers']): Promise<void> {
    const controller = new AbortController()
    this.#open.set(id, controller)
    try {
      const resultText = await this.#result(request, headers, controller.signal)
      if (this.#open.has(id)) this.#receiver?.message({ kind: 'response', id, resultText }, id)
    } catch (error) {
      if (!this.#open.has(id)) return
      if (error instanceof RpcError) this.#receiver?.message({ kind: 'response', id, errorText: error.toText() }, id)
      else {
        this.#receiver?.failed(
          id,
          error instanceof UpstreamError ? error : new UpstreamError('broken', error instanceof Error ? error.message : String(error))
        )
      }
    } finally {
      this.#open.delete(id)
    }
  }

  async #result ({ method, params, paramsText }: Request, headers: SendOptions['headers'], signal: AbortSignal): Promise<string> {
    const { description } = this.#api ?? {}
    if (!description) throw new UpstreamError('closed', 'the connection is not open')
    const compiled = await description.current()
    switch (method) {
      case 'ping':
        return '{}'
      case 'initialize':
        return initialized(compiled, params.protocolVersion)
      case 'tools/list':
        return await this.#page(compiled, params.cursor)
      case 'tools/call':
        return await this.#call(compiled, params.name, paramsText, headers, signal)
      default:
        throw new RpcError(code.methodNotFound, `Method not found: ${method}`)
    }
  }

  /** One page: small enough that reading it holds up nothing else, which has its turn in between. */
  async #page (compiled: CompiledDescription, cursor: unknown): Promise<string> {
    const first = typeof cursor === 'string' ? Number(cursor) : 0
    const listed = first === 0 ? compiled : (this.#listed ?? compiled)
    this.#listed = listed
    let size = 0
    let end = first
    while (end < listed.tools.length && (end === first || size < limits.openapi.page)) size += listed.tools[end++]?.length ?? 0
    await new Promise((resolve) => {
      setImmediate(resolve)
    })
    if (end >= listed.tools.length) this.#listed = undefined
    return `{"tools":[${listed.tools.slice(first, end).join(',')}]${end < listed.tools.length ? `,"nextCursor":"${end}"` : ''}}`
  }

  async #call (
    compiled: CompiledDescription,
    name: unknown,
    paramsText: string,
    headers: SendOptions['headers'],
    signal: AbortSignal
  ): Promise<string> {
    const at = typeof name === 'string' ? compiled.names.indexOf(name) : -1
    const plan = JSON.parse(compiled.plans[at] ?? 'null') as OperationPlan | null
    if (!plan) throw new RpcError(code.invalidParams, `Unknown tool: ${memberOf(paramsText, 'name') ?? 'it has no name'}`)
    let request: ApiRequest
    try {
      request = toRequest(plan, paramsText, this.#server(plan, compiled))
    } catch (error) {
      if (error instanceof ArgumentError) return errorResult(error.message)
      throw error
    }
    const token = await this.#prepare(request, plan, compiled, headers)
    const answer = await this.#fetch(request, signal)
    if (answer.status !== 401 || token === undefined) return toToolResult(answer)
    // What it refused did not run: once more, with another token.
    this.#api?.credentials.invalidate(token)
    request.headers.delete('authorization')
    await this.#api?.credentials.authorize(request, compiled.securityDefaults)
    return toToolResult(await this.#fetch(request, signal))
  }

  /** Adds what the configuration and the client send along. Where the configuration says where the API is, that goes nowhere else. */
  async #prepare (
    request: ApiRequest,
    plan: OperationPlan,
    compiled: CompiledDescription,
    headers: SendOptions['headers']
  ): Promise<string | undefined> {
    const { config, passed } = this.#options
    request.headers.set('user-agent', request.headers.get('user-agent') ?? 'tool-hub')
    if (!request.headers.has('accept')) request.headers.set('accept', 'application/json, text/*;q=0.9, */*;q=0.8')
    const pinned = this.#pinned
    if (pinned !== undefined && new URL(pinned).origin !== request.origin) return undefined
    for (const [given, value] of Object.entries({ ...(headers ?? passed?.()), ...config.headers })) {
      const [name, text] = toHeader(given, value)
      if (name === 'cookie') request.cookies.push(text)
      else if (name !== 'content-type' || request.body === undefined) request.headers.set(name, text)
    }
    return plan.anonymous ? undefined : await this.#api?.credentials.authorize(request, compiled.securityDefaults)
  }

  async #fetch (request: ApiRequest, signal: AbortSignal): Promise<Parameters<typeof toToolResult>[0]> {
    const { config, outbound } = this.#options
    const { method, origin, path, query, configuredQuery: ownQuery, cookies, body } = request
    const headers = Object.fromEntries(request.headers)
    if (cookies.length > 0) headers.cookie = cookies.join('; ')
    try {
      const url = `${origin}${path}${query.length > 0 ? `?${query.join('&')}` : ''}`
      const answer = await outbound.fetch(url, {
        ...reachOf(config),
        method: method as 'GET',
        headers,
        body,
        maxSize: limits.openapi.answer,
        timeout: never,
        signal,
        answersRedirects: true
      })
      return { method, url: `${origin}${path}`, configuredQuery: ownQuery, ...answer }
    } catch (error) {
      // An API that is away is no reason to connect to its description anew.
      throw error instanceof UpstreamError && error.didNotRun ? new UpstreamError('refused', error.message) : error
    }
  }

  /** Where the configuration says that the API is. */
  get #pinned (): string | undefined {
    const { url, openapi } = this.#options.config
    return openapi?.url !== undefined || openapi?.schema !== undefined ? url : undefined
  }

  /** Where an operation is. */
  #server ({ server }: OperationPlan, compiled: CompiledDescription): string {
    const pinned = this.#pinned
    if (server === undefined) return this.#base(compiled)
    if (pinned === undefined || compiled.serverUrl === undefined) return server
    // One on the host of the described API is there, and the configuration says where that is.
    const [own, described] = [new URL(server), new URL(compiled.serverUrl)]
    if (own.host !== described.host) return server
    return own.pathname === described.pathname ? pinned : new URL(`${own.pathname}${own.search}`, pinned).href
  }

  #base (compiled: CompiledDescription): string {
    const base = this.#pinned ?? compiled.serverUrl
    if (base === undefined) {
      throw new UpstreamError('refused', 'the description names no server with an address of its own: give the address of the API as "url"')
    }
    return base
  }
}

function initialized ({ title, version, instructions }: CompiledDescription, asked: unknown): string {
  return JSON.stringify({
    protocolVersion: isLegacyVersion(asked) ? asked : latestLegacy,
    capabilities: { tools: { listChanged: true } },
    serverInfo: { name: title === '' ? 'openapi' : title, version: version === '' ? '0' : version },
    instructions
  })
}
