import { messageOf } from '../../../db/errors.ts'
import { rpcCode, RpcError, UpstreamError } from '../../../protocol/errors.ts'
import { isLegacyVersion, latestLegacyVersion } from '../../../protocol/legacy/versions.ts'
import type { Request } from '../../../protocol/message.ts'
import { parseMessage } from '../../../protocol/parse-message.ts'
import {
  transportLimits, type Receiver, type SendOptions, type Transport
} from '../../../protocol/transports/transport.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import { type Outbound, outboundAccessOf } from '../../base/outbound/index.ts'
import type { ApiWithCredentials, SharedApi } from './api.ts'
import { ApiCredentials } from './call/credentials.ts'
import { OperationCaller } from './call/operation-caller.ts'
import { ApiDescription } from './describe/description.ts'
import { toHeader } from './http-syntax.ts'
import type { CompiledDescription } from './plan.ts'

interface OpenApiTransportOptions {
  /** The config, with its variables expanded. */
  config: ServerConfig
  outbound: Outbound
  sharedApi: SharedApi
  /** Returns the passed-on headers of the connection's client, used if a request has no headers of its own. */
  clientHeaders?: () => Readonly<Record<string, string>> | undefined
  /** Whether a value contains a credential of this gateway. Default: decided by its form. */
  isOwnCredential?: ((value: string) => boolean) | undefined
  /** The owner whose memory is used for requests that no client causes. */
  owner: string
  warn: (sentence: string) => void
}

/**
 * Makes an HTTP API an MCP server within this process: the operations of the API are tools. The server exchanges MCP
 * messages with the gateway, so that lists, deadlines and cancellation work as with other servers.
 */
export class OpenApiTransport implements Transport {
  readonly #options: OpenApiTransportOptions
  readonly #caller: OperationCaller
  /** Aborts the requests in flight, by id. */
  readonly #inFlight = new Map<number, AbortController>()
  #receiver: Receiver | undefined
  #api: ApiWithCredentials | undefined
  #release: () => void = () => {}
  /** The description from which the first page of the current listing was read: later pages are read from it, too. */
  #listed: CompiledDescription | undefined

  constructor (options: OpenApiTransportOptions) {
    this.#options = options
    this.#caller = new OperationCaller(options)
  }

  async start (receiver: Receiver): Promise<void> {
    const { config, outbound, sharedApi, warn } = this.#options
    this.#receiver = receiver
    for (const [name, value] of Object.entries(config.headers ?? {})) toHeader(name, value)
    const { api, release } = sharedApi.acquire((onChange) => ({
      description: new ApiDescription(config, { outbound, warn, onChange }),
      credentials: new ApiCredentials(config.openapi?.security, outbound, outboundAccessOf(config))
    }), () => {
      this.#receiver?.message(
        { kind: 'notification', method: 'notifications/tools/list_changed', params: {}, paramsText: '{}' }, undefined
      )
    })
    this.#api = api
    this.#release = release
    this.#caller.assertServer(await api.description.current())
  }

  send (text: string, options?: SendOptions): void {
    const message = parseMessage(text, transportLimits.depth)
    if (Array.isArray(message) || message.kind !== 'request' || options?.id === undefined) return
    void this.#respond(options.id, message, options)
  }

  drop (id: number): void {
    this.#inFlight.get(id)?.abort()
    this.#inFlight.delete(id)
  }

  async onNegotiated (): Promise<void> {}

  async close (): Promise<void> {
    this.#receiver = undefined
    for (const id of [...this.#inFlight.keys()]) this.drop(id)
    this.#release()
  }

  /** Handles a request, and passes the response to the receiver unless the request was dropped in the meantime. */
  async #respond (id: number, request: Request, options: SendOptions): Promise<void> {
    const controller = new AbortController()
    this.#inFlight.set(id, controller)
    try {
      const resultText = await this.#handle(request, options, controller.signal)
      if (this.#inFlight.has(id)) this.#receiver?.message({ kind: 'response', id, resultText }, id)
    } catch (error) {
      if (!this.#inFlight.has(id)) return
      if (error instanceof RpcError) {
        this.#receiver?.message(
          { kind: 'response', id, errorText: error.toText() }, id
        )
      } else this.#receiver?.failed(id, toUpstreamError(error))
    } finally {
      this.#inFlight.delete(id)
    }
  }

  async #handle ({ method, params, paramsText }: Request, options: SendOptions, signal: AbortSignal): Promise<string> {
    if (!this.#api) throw new UpstreamError('closed', 'the connection is not open')
    const compiled = await this.#api.description.current()
    switch (method) {
      case 'ping':
        return '{}'
      case 'initialize':
        return initializeResult(compiled, params.protocolVersion)
      case 'tools/list':
        return await this.#listPage(compiled, params.cursor)
      case 'tools/call':
        return await this.#caller.call(this.#api, compiled, {
          name: params.name,
          paramsText,
          headers: options.headers,
          memoryOwner: options.owner ?? this.#options.owner,
          signal
        })
      default:
        throw new RpcError(rpcCode.methodNotFound, `Method not found: ${method}`)
    }
  }

  /** Returns one page of `tools/list`, after other pending work, so that a long list does not block the event loop. */
  async #listPage (compiled: CompiledDescription, cursor: unknown): Promise<string> {
    const index = typeof cursor === 'string' ? Number(cursor) : 0
    const { pages } = this.#listed = index === 0 ? compiled : (this.#listed ?? compiled)
    await new Promise((resolve) => {
      setImmediate(resolve)
    })
    if (index + 1 >= pages.length) this.#listed = undefined
    return pages[index] ?? '{"tools":[]}'
  }
}

function toUpstreamError (error: unknown): UpstreamError {
  if (error instanceof UpstreamError) return error
  return new UpstreamError('broken', messageOf(error))
}

function initializeResult ({ title, version, instructions }: CompiledDescription, requestedVersion: unknown): string {
  return JSON.stringify({
    protocolVersion: isLegacyVersion(requestedVersion) ? requestedVersion : latestLegacyVersion,
    capabilities: { tools: { listChanged: true } },
    serverInfo: { name: title === '' ? 'openapi' : title, version: version === '' ? '0' : version },
    instructions
  })
}
