import { code, RpcError, UpstreamError } from '../../../protocol/errors.ts'
import type { Exchange } from '../../../protocol/exchange.ts'
import { limits } from '../../limits/index.ts'
import type { ConnectionSupervisor } from './supervisor.ts'
import type { Link } from './link.ts'
import type { Slot } from './slot.ts'

/** How a client's requests use a server's links: how long they wait for one, when they are repeated, and what is said when it fails. */
export class RequestRunner {
  readonly #name: string
  readonly #supervisor: ConnectionSupervisor

  /** @param name the server's */
  constructor (name: string, supervisor: ConnectionSupervisor) {
    this.#name = name
    this.#supervisor = supervisor
  }

  /**
   * Does something on a slot's link, which is waited for; where that turns out to have expired, once more on a new one.
   * @throws RpcError -32001 in words when no answer can be had
   */
  async once<Result> (slot: Slot, work: (link: Link) => Promise<Result>, exchange?: Exchange): Promise<Result> {
    for (let again = true; ; again = false) {
      const link = slot.link ?? await this.patiently(slot, exchange)
      try {
        return await work(link)
      } catch (error) {
        if (!(error instanceof UpstreamError)) throw error
        // Whoever wants other credentials wants them on another connection, too.
        if (!error.didNotRun || error.fault === 'unauthorized' || !again || exchange?.cancelled !== undefined) throw this.#explain(error)
        this.#supervisor.lost(slot, link, error)
        link.retire()
      }
    }
  }

  /** The slot's link, waited for as long as a client should. @throws RpcError -32001 */
  async patiently (slot: Slot, exchange?: Exchange): Promise<Link> {
    let timer: NodeJS.Timeout | undefined
    try {
      return await Promise.race([
        this.#supervisor.ready(slot),
        new Promise<never>((_resolve, reject) => {
          timer = setTimeout(() => {
            reject(new UpstreamError('timeout', `it is still connecting after ${limits.connectionWait / 1_000} s`))
          }, limits.connectionWait)
          exchange?.onCancel((reason) => { reject(new UpstreamError('closed', reason)) })
        })
      ])
    } catch (error) {
      throw error instanceof UpstreamError ? this.#explain(error, 'is not connected') : error
    } finally {
      clearTimeout(timer)
    }
  }

  #explain (error: UpstreamError, what = 'did not answer'): RpcError {
    const name = JSON.stringify(this.#name)
    const reason = this.#supervisor.hide(error.message)
    if (error.fault === 'timeout' && what !== 'is not connected') {
      return new RpcError(code.unavailable, `Request timed out: server ${name} gave ${reason}`)
    }
    if (error.fault === 'broken') return new RpcError(code.unavailable, `Server ${name} failed: ${reason}. The request may have run`)
    return new RpcError(code.unavailable, `Server ${name} ${what}: ${reason}`)
  }
}
