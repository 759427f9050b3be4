import { rpcCode, RpcError } from '../../../protocol/errors.ts'
import type { View } from '../../settings/index.ts'
import { BoundedMap, ShareError, Shares } from '../../base/limits/index.ts'
import { ParkedCall, type ParkedCallTable, type Parkable } from './parked-call.ts'
import type { RequestStateSealer } from './state.ts'
import { downstreamLimits } from '../limits.ts'

/** The calls of modern clients in which questions were asked or answered, until shortly after they have ended. */
export class ParkedCalls<Exchange extends Parkable> implements ParkedCallTable<Exchange> {
  readonly states: RequestStateSealer
  readonly #calls = new Map<string, ParkedCall<Exchange>>()
  /** The finished calls whose answers may be fetched again. */
  readonly #finished = new BoundedMap<string, ParkedCall<Exchange>>(
    downstreamLimits.parked.answers, { onEvict: (_id, call) => { call.forget() } }
  )

  readonly #shares = new Shares(downstreamLimits.parked.calls, 'calls that wait for input from their clients')
  readonly #sizes = new Shares(downstreamLimits.parked.size, 'input requests and responses of calls')

  constructor (states: RequestStateSealer) {
    this.states = states
  }

  /** The number of calls that have been parked and whose answers have not been sent yet. */
  get count (): number { return this.#calls.size }
  /** The memory reserved for the calls, in bytes. */
  get size (): number { return this.#sizes.taken }

  /** Parks an exchange for its first question. @throws RpcError if too many calls are parked */
  park (exchange: Exchange): ParkedCall<Exchange> {
    try {
      const call = new ParkedCall(this, exchange, this.#shares.take(exchange.client.owner))
      this.#calls.set(call.id, call)
      return call
    } catch (error) {
      if (error instanceof ShareError) throw new RpcError(rpcCode.internal, error.message, 'limit')
      throw error
    }
  }

  /**
   * Records an exchange that starts from a state without a parked call. A repeated request then waits for it, too.
   * @param id the id of the state (`RequestStateSealer.idOf`)
   * @param answersText the request's `inputResponses`, as JSON text
   * @returns undefined if there are too many calls; a repeated request then starts another exchange
   */
  begin (exchange: Exchange, id: string, answersText: string): ParkedCall<Exchange> | undefined {
    try {
      const call = new ParkedCall(this, exchange, this.#shares.take(exchange.client.owner), id, answersText)
      this.#calls.set(id, call)
      return call
    } catch (error) {
      if (error instanceof ShareError) return undefined
      throw error
    }
  }

  find (id: string): ParkedCall<Exchange> | undefined { return this.#calls.get(id) ?? this.#finished.get(id) }

  /**
   * Reserves memory for a call. If too little is free, first drops all answers that are kept to be fetched again.
   * @param size in bytes
   * @returns false if too little is free even then, in total or for the owner
   */
  reserveMemory (owner: string, size: number): boolean {
    if (this.#sizes.tryAdd(owner, size)) return true
    for (const call of [...this.#finished.values()]) call.forget()
    return this.#sizes.tryAdd(owner, size)
  }

  releaseMemory (owner: string, size: number): void { this.#sizes.remove(owner, size) }

  /** Keeps a call that has ended, so that its answer can be fetched again. */
  keepAnswer (call: ParkedCall<Exchange>): void {
    this.#calls.delete(call.id)
    this.#finished.set(call.id, call)
  }

  remove (id: string): void {
    this.#calls.delete(id)
    this.#finished.delete(id)
  }

  /** Drops the kept answers of calls whose views have lost access. */
  revoke (hasAccess: (view: View) => boolean): void {
    for (const call of [...this.#calls.values(), ...this.#finished.values()]) {
      if (call.exchange.isOver && !hasAccess(call.exchange.view)) call.forget()
    }
  }

  /** Ends the calls whose answers no request waits for. */
  endIdle (error: RpcError): void {
    for (const { exchange } of [...this.#calls.values()]) if (!exchange.isAwaited) exchange.end(error)
  }
}
