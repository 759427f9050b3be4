import { rpcCode, RuleRefusalError, RpcError } from '../../../protocol/errors.ts'
import type { View } from '../../settings/index.ts'
import { errors, noSuchError } from '../../base/errors/index.ts'
import type { Gateway } from '../../gateway/index.ts'
import { InFlightTable } from '../endpoint.ts'
import type { DisconnectSignal, PlainHttpExchange } from './exchange.ts'

interface InFlightCall {
  readonly exchange: PlainHttpExchange
  readonly server: string
  /** The error that the caller gets instead of the result if its credential is no longer valid. */
  refusal: Error | undefined
}

/** The running requests of plain HTTP callers. Their number is limited by the gateway, not here. */
export class InFlightCalls {
  readonly #gateway: Pick<Gateway, 'handle' | 'redact'>
  readonly #running = new InFlightTable<InFlightCall>()

  constructor (gateway: Pick<Gateway, 'handle' | 'redact'>) {
    this.#gateway = gateway
  }

  /**
   * Runs one request until it is answered, or until its caller disconnects.
   * @returns the text of the result
   * @throws Draining, ShareError, the errors that `toHttpError` returns, and the error determined by `endWithoutAccess`
   */
  async run (exchange: PlainHttpExchange, server: string, gone: DisconnectSignal): Promise<string> {
    if (this.#running.isClosing) throw new errors.Draining()
    gone.listen(() => { exchange.cancel('the caller went away') })
    const call: InFlightCall = { exchange, server, refusal: undefined }
    const number = this.#running.add(call)
    let result: string
    try {
      result = String(await this.#gateway.handle(exchange))
    } catch (error) {
      throw call.refusal ?? this.toHttpError(error, server, exchange)
    } finally {
      this.#running.remove(number)
    }
    // A hook may have held the result while the caller lost access.
    if (call.refusal !== undefined) throw call.refusal
    return result
  }

  /** Translates a JSON-RPC error to an HTTP error without the server's secrets. Other errors are returned unchanged. */
  toHttpError (
    error: unknown, server: string, { method, params }: Pick<PlainHttpExchange, 'method' | 'params'>
  ): unknown {
    if (!(error instanceof RpcError)) return error
    const message = this.#gateway.redact(server, error.message)
    const name = String(params.name ?? params.uri ?? '')
    switch (error.reason) {
      case 'unknown-tool': return noSuchError('tool', name)
      case 'unknown-prompt': return noSuchError('prompt', name)
      case 'unknown-resource': return noSuchError('resource', name)
      case 'timeout': return new errors.UpstreamSlow(message)
      case 'limit': return new errors.LimitReached(message)
      case 'share': return new errors.ShareUsed(message)
      case 'refused': return new errors.Refused(message)
      case 'quota': return new errors.QuotaUsedUp(
        message, error instanceof RuleRefusalError ? error.retryAfter : undefined
      )
      default:
        if (method === 'resources/read' && error.code === rpcCode.resourceNotFound) return noSuchError('resource', name)
        if (error.code === rpcCode.invalidParams) return new errors.InvalidInput(message)
        return new errors.UpstreamFailed(message)
    }
  }

  /**
   * Ends the calls whose callers have lost access.
   * @param lossOf returns the error for the caller, or the reason why the server did not answer; undefined if the call
   * may continue
   */
  endWithoutAccess (lossOf: (view: View, server: string) => Error | string | undefined): void {
    for (const call of this.#running.values()) {
      const loss = lossOf(call.exchange.view, call.server)
      if (loss === undefined) continue
      call.refusal ??= typeof loss === 'string'
        ? new errors.UpstreamFailed(
          `Server ${JSON.stringify(call.server)} did not answer: ${loss}. The request may have run`
        )
        : loss
      call.exchange.cancel(typeof loss === 'string' ? loss : 'access was withdrawn')
    }
  }

  /** Waits up to `timeout` ms for the running calls, then cancels the rest. */
  async close (timeout: number): Promise<void> {
    await this.#running.drain(timeout)
    for (const { exchange } of this.#running.values()) {
      exchange.cancel('the gateway is shutting down')
    }
  }
}
