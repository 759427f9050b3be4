import type { IncomingHttpHeaders } from 'node:http'
import { code, RpcError } from '../../protocol/errors.ts'
import { isObject } from '../../protocol/json.ts'
import { errors } from '../errors/list.ts'
import { convertArguments } from '../gateway/arguments.ts'
import { DirectExchange } from '../gateway/direct.ts'
import type { Access } from '../gateway/access.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { Principal } from '../gateway/view.ts'

/** Tools as a REST caller runs them. */
export class Tools {
  readonly #gateway: Gateway
  readonly #access: Access
  readonly #running = new Set<DirectExchange>()
  #drained: (() => void) | undefined

  constructor (gateway: Gateway, access: Access) {
    this.#gateway = gateway
    this.#access = access
  }

  /**
   * Calls a tool of one server.
   * @returns the result as the tool gave it, failed or not
   * @throws NoSuch for a server or tool that is not there for this principal, InvalidInput, UpstreamFailed, UpstreamSlow
   */
  async call (principal: Principal, server: string, name: string, args: Record<string, unknown>, headers: IncomingHttpHeaders, gone: AbortSignal): Promise<Record<string, unknown>> {
    const view = this.#access.server(principal, server)
    const schema = this.#gateway.inputSchema(view, name)
    const exchange = new DirectExchange(view, 'tools/call', { name, arguments: convertArguments(schema, args) }, headers)
    gone.addEventListener('abort', () => { exchange.cancel('the caller went away') }, { once: true })
    this.#running.add(exchange)
    try {
      const result: unknown = JSON.parse(String(await this.#gateway.handle(exchange)))
      return isObject(result) ? result : {}
    } catch (error) {
      throw error instanceof RpcError ? toHttp(error) : error
    } finally {
      this.#running.delete(exchange)
      if (this.#running.size === 0) this.#drained?.()
    }
  }

  /** Waits for the calls that run, so many ms; what is left then answers with an error. */
  async close (timeout: number): Promise<void> {
    if (this.#running.size > 0) await new Promise<void>((resolve) => { this.#drained = resolve; setTimeout(resolve, timeout).unref() })
    for (const exchange of this.#running) exchange.cancel('the gateway is shutting down; the call may have run')
  }
}

/** What a JSON-RPC error is to a REST caller. */
function toHttp (error: RpcError): Error {
  if (error.code === code.invalidParams && error.message.startsWith('Unknown tool')) return new errors.NoSuch('tool')
  if (error.code === code.invalidParams) return new errors.InvalidInput(error.message)
  if (error.code === code.unavailable && error.message.startsWith('Request timed out')) return new errors.UpstreamSlow(error.message)
  return new errors.UpstreamFailed(error.message)
}
