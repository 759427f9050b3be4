import { code, RpcError } from '../../protocol/errors.ts'
import { errors } from '../errors/list.ts'
import type { DirectExchange } from './exchange.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { View } from '../access/view.ts'
import { limits } from '../limits/index.ts'

/** A request that runs for a caller without MCP. */
interface Run {
  readonly server: string
  /** What its caller is told instead of an answer. */
  refusal: Error | undefined
}

/** What runs for callers without MCP. */
export class InFlightCalls {
  readonly #gateway: Gateway
  readonly #hide: (server: string, text: string) => string
  readonly #running = new Map<DirectExchange, Run>()
  #drained: (() => void) | undefined

  /** @param hide takes the secrets of a server's config out of what it says */
  constructor (gateway: Gateway, hide: (server: string, text: string) => string) {
    this.#gateway = gateway
    this.#hide = hide
  }

  /** Does one request until its end, or its caller's. @returns the text of its result @throws UpstreamFailed, UpstreamSlow, TooManyCalls, InvalidInput, NoSuch; what `withdraw` says */
  async run (exchange: DirectExchange, server: string, gone: AbortSignal): Promise<string> {
    if (this.#running.size >= limits.restCalls || !this.#hasRoom(exchange.view.principal.key, server)) throw new errors.TooManyCalls()
    gone.addEventListener('abort', () => { exchange.cancel('the caller went away') }, { once: true })
    const run: Run = { server, refusal: undefined }
    this.#running.set(exchange, run)
    try {
      return String(await this.#gateway.handle(exchange))
    } catch (error) {
      throw run.refusal ?? (error instanceof RpcError ? toHttp(error, (text) => this.#hide(server, text)) : error)
    } finally {
      this.#running.delete(exchange)
      if (this.#running.size === 0) this.#drained?.()
    }
  }

  /** Nobody takes all places, and no server that does not answer. */
  #hasRoom (principal: string, server: string): boolean {
    if (this.#running.size < limits.restCallsPerCaller) return true
    const running = [...this.#running]
    return [running.filter(([{ view }]) => view.principal.key === principal), running.filter(([, run]) => run.server === server)].every(
      ({ length }) => length < limits.restCallsPerCaller
    )
  }

  /** Ends what would not be begun any more. @param refusalOf what a caller is answered now; undefined: what it asked for */
  withdraw (refusalOf: (view: View, server: string) => Error | undefined): void {
    for (const [exchange, run] of this.#running) {
      run.refusal ??= refusalOf(exchange.view, run.server)
      if (run.refusal) exchange.cancel('access was withdrawn')
    }
  }

  /** Waits for the calls that run, so many ms; what is left then answers with an error. */
  async close (timeout: number): Promise<void> {
    if (this.#running.size > 0) await new Promise<void>((resolve) => { this.#drained = resolve; setTimeout(resolve, timeout).unref() })
    for (const exchange of this.#running.keys()) exchange.cancel('the gateway is shutting down; the call may have run')
  }
}

/** What a JSON-RPC error is to a caller without MCP. */
function toHttp (error: RpcError, hide: (text: string) => string): Error {
  const unknown = /^Unknown (tool|prompt): /.exec(error.message)?.[1]
  if (error.code === code.invalidParams && unknown !== undefined) return new errors.NoSuch(unknown)
  if (error.code === code.invalidParams) return new errors.InvalidInput(hide(error.message))
  if (error.code === code.unavailable && error.message.startsWith('Request timed out')) return new errors.UpstreamSlow(hide(error.message))
  return new errors.UpstreamFailed(hide(error.message))
}
