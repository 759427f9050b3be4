import { code, RpcError, UpstreamError } from '../../../protocol/errors.ts'
import type { Exchange } from '../../../protocol/exchange.ts'
import { LoginRequired } from '../login/problems.ts'
import type { Link } from './link.ts'
import type { Slot } from './slot.ts'
import type { ConnectionSupervisor } from './supervisor.ts'
import { gatewayLimits } from '../../gateway/index.ts'

/** How clients' requests use a server's links: waiting for a link, repeating a request, and errors. */
export class RequestRunner {
  readonly #server: string
  readonly #supervisor: ConnectionSupervisor

  constructor (server: string, supervisor: ConnectionSupervisor) {
    this.#server = server
    this.#supervisor = supervisor
  }

  /**
   * Does some work on a slot's link once that is open, and once more on a new link if the first one turns out to have
   * expired.
   * @param exchange the client's request; undefined: a request of the gateway
   * @throws RpcError -32001 when there is no answer
   */
  async run<Result> (slot: Slot, work: (link: Link) => Promise<Result>, exchange?: Exchange): Promise<Result> {
    for (let isFirstTry = true; ; isFirstTry = false) {
      const link = slot.link ?? await this.link(slot, exchange)
      try {
        return await work(link)
      } catch (error) {
        if (!(error instanceof UpstreamError)) throw error
        // An upstream that requires other credentials requires them on another connection, too.
        const repeat = isFirstTry && error.didNotRun && error.fault !== 'unauthorized' &&
          exchange?.cancelled === undefined
        if (!repeat) throw this.#toRpcError(error, exchange)
        this.#supervisor.onLost(slot, link, error)
        link.retire()
      }
    }
  }

  /** The slot's link, awaited while it opens. @throws RpcError -32001 */
  async link (slot: Slot, exchange?: Exchange): Promise<Link> {
    let timer: NodeJS.Timeout | undefined
    try {
      return await Promise.race([
        this.#supervisor.ensureLink(slot),
        new Promise<never>((_resolve, reject) => {
          timer = setTimeout(() => {
            reject(new UpstreamError('timeout', 'it is still connecting after ' +
              `${gatewayLimits.connectionWait / 1_000} s`))
          }, gatewayLimits.connectionWait)
          exchange?.onCancel((reason) => { reject(new UpstreamError('closed', reason)) })
        })
      ])
    } catch (error) {
      throw error instanceof UpstreamError ? this.#notConnected(error, exchange) : error
    } finally {
      clearTimeout(timer)
    }
  }

  #notConnected (error: UpstreamError, exchange: Exchange | undefined): RpcError {
    if (error instanceof LoginRequired) return error.toRpcError(this.#server, exchange?.client)
    const reason = error.fault === 'closed' ? 'cancelled' : 'not-connected'
    return new RpcError(code.unavailable, `Server ${this.#name} is not connected: ${this.#redacted(error)}`, reason)
  }

  #toRpcError (error: UpstreamError, exchange: Exchange | undefined): RpcError {
    if (error instanceof LoginRequired) return error.toRpcError(this.#server, exchange?.client)
    const why = this.#redacted(error)
    switch (error.fault) {
      case 'timeout': return new RpcError(code.unavailable, 'Request timed out: server ' +
        `${this.#name} gave ${why}`, 'timeout')
      case 'broken': return new RpcError(code.unavailable, `Server ${this.#name} failed: ${why}. The request may ` +
        'have run', 'no-answer')
      case 'no-room':
      case 'share-used': {
        const reason = error.fault === 'share-used' ? 'share' : 'limit'
        return new RpcError(code.unavailable, `Server ${this.#name} answered, but ` +
          `${why}. The request may have run`, reason)
      }
      case 'refused': return new RpcError(code.unavailable, `Server ${this.#name} failed: ${why}`, 'no-answer')
      case 'closed': return new RpcError(code.unavailable, `Server ${this.#name} did not answer: ${why}`, 'cancelled')
      default: return new RpcError(code.unavailable, `Server ${this.#name} did not answer: ${why}`, 'no-answer')
    }
  }

  get #name (): string { return JSON.stringify(this.#server) }
  #redacted (error: UpstreamError): string { return this.#supervisor.redact(error.messageForClients) }
}
