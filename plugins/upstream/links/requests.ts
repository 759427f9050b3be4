import type { ParamChanges } from '../../../protocol/call.ts'
import { lostServerClause, rpcCode, RpcError, UpstreamError } from '../../../protocol/errors.ts'
import type { Client, Exchange } from '../../../protocol/exchange.ts'
import { isObject, memberOf, withMembers } from '../../../protocol/json.ts'
import { parseRpcError, type Response } from '../../../protocol/message.ts'
import type { Circuits } from './circuits.ts'
import { UserActionRequired } from '../login/problems.ts'
import type { Link } from './link.ts'
import type { Slot } from './slot.ts'
import type { ConnectionSupervisor } from './supervisor.ts'
import { upstreamLimits } from '../limits.ts'
import { gatewayLimits } from '../../gateway/index.ts'

/** Runs requests on a server's links: waits until the link is open, repeats requests, and converts errors. */
export class RequestRunner {
  readonly #server: string
  readonly #supervisor: ConnectionSupervisor
  readonly #circuits: Circuits
  /** The clients' requests that wait for a connection, with a function that makes each fail. */
  readonly #waiting = new Map<Exchange, (error: UpstreamError) => void>()

  constructor (server: string, supervisor: ConnectionSupervisor, circuits: Circuits) {
    this.#server = server
    this.#supervisor = supervisor
    this.#circuits = circuits
  }

  /**
   * Runs `work` on a slot's link, which is opened if needed. If the server certainly did not execute the request (the
   * session has expired, or the server is unreachable), runs `work` once more on a new link.
   * @param exchange the client's request; undefined if no single client request causes the work
   * @throws RpcError -32001 if there is no response, or with a page that the user must open first
   */
  async run<Result> (slot: Slot, work: (link: Link) => Promise<Result>, exchange?: Exchange): Promise<Result> {
    const { circuit } = slot
    for (let isFirstTry = true; ; isFirstTry = false) {
      if (circuit.isOpen) await this.#passCircuit(slot, exchange)
      const link = slot.link ?? await this.waitForLink(slot, exchange)
      try {
        const result = await work(link)
        if (circuit.failures > 0) this.#circuits.recordAnswer(circuit)
        return result
      } catch (error) {
        if (error instanceof RpcError && error.reason === 'upstream') {
          throw parseRpcError(this.#masked(error.toText()))
        }
        if (!(error instanceof UpstreamError)) throw error
        this.#circuits.recordFailure(circuit, error, link)
        // An upstream that refuses the credentials would refuse them on a new connection, too.
        const repeat = isFirstTry && error.didNotRun && error.fault !== 'unauthorized' &&
          exchange?.cancelled === undefined
        if (!repeat) throw this.#toRpcError(error, exchange)
        this.#supervisor.onLost(slot, link, error)
        link.retire()
      }
    }
  }

  /**
   * Sends a client's notification on a slot's link, which is opened if needed. If the link is not open, the
   * notification is dropped in three cases: the server keeps failing, too many notifications wait already, or the
   * notification announces a change of the roots, which a new link requests anyway.
   */
  notify (slot: Slot, method: string, paramsText: string): void {
    if (slot.link) { slot.link.notify(method, paramsText); return }
    if (method === 'notifications/roots/list_changed' || slot.circuit.isOpen) return
    if (slot.waitingNotifications >= upstreamLimits.waitingNotifications) return
    slot.waitingNotifications++
    this.waitForLink(slot)
      .then((link) => { link.notify(method, paramsText) }, () => {})
      .finally(() => { slot.waitingNotifications-- })
  }

  /** Returns the slot's link, and opens it if needed. @throws RpcError if it is not open in time or cannot be opened */
  async waitForLink (slot: Slot, exchange?: Exchange): Promise<Link> {
    const { connectionWait } = gatewayLimits
    // After a failure, the waiting time counts from the start of the attempt, so that later requests wait less.
    const since = slot.circuit.failures > 0 && slot.opening ? Date.now() - slot.lastTry : 0
    return await this.#connected(this.#supervisor.ensureLink(slot), Math.max(connectionWait - since, 0), exchange)
  }

  /** Runs a client's call with `run`, and masks the secrets of the server's config in its error, or its failed task. */
  async call (slot: Slot, work: (link: Link) => Promise<Response>, exchange: Exchange): Promise<Response> {
    const response = await this.run(slot, work, exchange)
    const { errorText, resultText } = response
    if (errorText !== undefined) response.errorText = this.#masked(errorText)
    const isOfTask = exchange.taskForm !== undefined || exchange.method.startsWith('tasks/')
    if (isOfTask && resultText?.includes('"failed"') === true) {
      response.resultText = this.#withMaskedFailure(resultText)
    }
    return response
  }

  /** Masks the secrets of the server's config in what a result, or the task in it, says of a failure. */
  #withMaskedFailure (result: string): string {
    const changes: Record<string, string> = {}
    for (const name of ['error', 'statusMessage', 'task']) {
      const member = memberOf(result, name)
      if (member === undefined) continue
      const masked = name === 'task' && member.startsWith('{') ? this.#withMaskedFailure(member) : this.#masked(member)
      if (masked !== member) changes[name] = masked
    }
    return Object.keys(changes).length === 0 ? result : withMembers(result, changes)
  }

  /** Masks the secrets of the server's config in the JSON text of an error. Without such a secret, the text is kept. */
  #masked (errorText: string): string {
    const redact = (text: string): string => this.#supervisor.redact(text)
    if (redact(errorText) === errorText) return errorText
    const redacted = (value: unknown): unknown => {
      if (typeof value === 'string') return redact(value)
      if (Array.isArray(value)) return value.map(redacted)
      if (!isObject(value)) return value
      return Object.fromEntries(Object.entries(value).map(([name, each]) => [redact(name), redacted(each)]))
    }
    return JSON.stringify(redacted(JSON.parse(errorText)))
  }

  /** Ends the requests of a client that wait for a connection: it is gone, or has lost access to this server. */
  release ({ id }: Client): void {
    for (const [{ client }, reject] of this.#waiting) {
      if (client.id === id) reject(new UpstreamError('closed', lostServerClause))
    }
  }

  /**
   * Handles a request while the slot's circuit is open: refuses it during the pause, and afterwards waits for a check
   * of the server.
   * @throws RpcError -32001
   */
  async #passCircuit (slot: Slot, exchange: Exchange | undefined): Promise<void> {
    const { circuit } = slot
    const pause = this.#circuits.pauseOf(circuit)
    if (pause > 0) {
      const seconds = Math.ceil(pause / 1_000)
      throw new RpcError(rpcCode.unavailable, `Server ${this.#name} is unavailable: it failed ` +
        `${circuit.failures} times in a row; the next check is in ${seconds} s`, 'not-connected')
    }
    circuit.probe ??= this.#probe(slot).finally(() => { circuit.probe = undefined })
    await this.#connected(circuit.probe, gatewayLimits.connectionWait, exchange)
  }

  /** Checks the server: opens the slot's link, or pings on the open one. @throws UpstreamError if the check fails */
  async #probe (slot: Slot): Promise<void> {
    const { link, circuit } = slot
    if (!link) { await this.#supervisor.ensureLink(slot); return }
    try {
      await link.ping(gatewayLimits.connectionWait)
    } catch (error) {
      if (error instanceof UpstreamError) {
        this.#circuits.recordFailure(circuit, error)
        this.#supervisor.onLost(slot, link, error)
        link.retire()
        throw error
      }
    }
    // An error response shows that the server works, too: not every server supports ping.
    this.#circuits.recordProbe(circuit)
  }

  /** Waits for a connection. @param wait max time, in ms @throws RpcError if it fails or takes longer */
  async #connected<Result> (opening: Promise<Result>, wait: number, exchange?: Exchange): Promise<Result> {
    let timer: NodeJS.Timeout | undefined
    try {
      return await Promise.race([
        opening,
        new Promise<never>((_resolve, reject) => {
          timer = setTimeout(() => {
            reject(new UpstreamError('timeout', 'it is still connecting after ' +
              `${gatewayLimits.connectionWait / 1_000} s`))
          }, wait)
          if (!exchange) return
          this.#waiting.set(exchange, reject)
          exchange.onCancel((reason) => { reject(new UpstreamError('closed', reason)) })
        })
      ])
    } catch (error) {
      throw error instanceof UpstreamError ? this.#notConnected(error, exchange) : error
    } finally {
      clearTimeout(timer)
      if (exchange) this.#waiting.delete(exchange)
    }
  }

  #notConnected (error: UpstreamError, exchange: Exchange | undefined): RpcError {
    if (error instanceof UserActionRequired) return error.toRpcError(this.#server, exchange?.client)
    const reason = error.fault === 'closed' ? 'cancelled' : 'not-connected'
    return new RpcError(rpcCode.unavailable, `Server ${this.#name} is not connected: ${this.#redacted(error)}`, reason)
  }

  #toRpcError (error: UpstreamError, exchange: Exchange | undefined): RpcError {
    if (error instanceof UserActionRequired) return error.toRpcError(this.#server, exchange?.client)
    const why = this.#redacted(error)
    switch (error.fault) {
      case 'timeout': return new RpcError(
        rpcCode.unavailable, `Request timed out: server ${this.#name} gave ${why}`, 'timeout'
      )
      case 'broken': return new RpcError(
        rpcCode.unavailable, `Server ${this.#name} failed: ${why}. The request may have run`, 'no-answer'
      )
      case 'no-room':
      case 'share-used': {
        const reason = error.fault === 'share-used' ? 'share' : 'limit'
        return new RpcError(
          rpcCode.unavailable, `Server ${this.#name} answered, but ${why}. The request may have run`, reason
        )
      }
      case 'refused': return new RpcError(rpcCode.unavailable, `Server ${this.#name} failed: ${why}`, 'no-answer')
      case 'closed': return new RpcError(
        rpcCode.unavailable, `Server ${this.#name} did not answer: ${why}. The request may have run`, 'cancelled'
      )
      default: return new RpcError(rpcCode.unavailable, `Server ${this.#name} did not answer: ${why}`, 'no-answer')
    }
  }

  get #name (): string { return JSON.stringify(this.#server) }
  #redacted (error: UpstreamError): string { return this.#supervisor.redact(error.messageForClients) }
}

/**
 * Removes `name` from the changes of a request's params if the name stays the same: without changes, the params need
 * not be copied.
 */
export function withoutUnchangedName ({ params: { name } }: Exchange, changes: ParamChanges): ParamChanges {
  if (typeof name !== 'string' || changes.name !== JSON.stringify(name)) return changes
  const { name: _, ...others } = changes
  return others
}
