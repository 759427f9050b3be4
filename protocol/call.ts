import { UpstreamError } from './errors.ts'
import type { Client, Exchange, Question } from './exchange.ts'
import { withMembers } from './json.ts'
import type { Response } from './message.ts'
import type { RpcConnection } from './peer.ts'
import { outgoingParams, progressTokenOf, restoreProgressToken } from './progress.ts'
import type { SendOptions } from './transports/transport.ts'

/** The time limits of a call, in ms. */
export interface Deadlines {
  /** Max time to wait for the upstream's answer. */
  timeout: number
  resetTimeoutOnProgress: boolean
  /** Max total time; undefined: unlimited. */
  maxTotalTimeout: number | undefined
}

/** The members of a request's `params` to replace, with their new values as JSON text. */
export type ParamChanges = Readonly<Record<string, string>>

/**
 * What to do after an answer that does not end its call: send the request again with changes, or end the call with
 * `response`.
 */
export type NextStep = { readonly changes: ParamChanges } | { readonly response: Response }

/** Adapts calls to an MCP revision. Without an adapter, calls are sent as in revisions up to 2025-11-25. */
export interface CallAdapter {
  /** Serializes a request's params. @param id the request's upstream id, which is also its progress token */
  params: (exchange: Exchange, changes: ParamChanges, id: number) => string
  /** Returns the headers that MCP prescribes for the request. */
  headers: (exchange: Exchange, changes: ParamChanges) => SendOptions['protocol']
  /** Whether `notifications/cancelled` cancels a request; false: closing its stream does. */
  readonly notifiesCancel: boolean
  /** Called before the request is sent again; `call.id` is the new id. @param previousId the id of the last request */
  onResend: (call: Call, previousId: number) => void
  /**
   * Called as soon as an answer arrives.
   * @returns undefined if that answer ends the call; otherwise a promise of the next step, which rejects with RpcError
   * or UpstreamError to end the call
   */
  onResponse: (call: Call, response: Response) => Promise<NextStep> | undefined
}

/** The options of a call beyond its exchange. */
export interface CallOptions {
  adapter?: CallAdapter
  /** Serializes the params of a call without an adapter. Default: `outgoingParams`. */
  paramsOf?: (exchange: Exchange, changes: ParamChanges, token: number) => string
  /** Members of the exchange's `params` to replace, as JSON text. */
  changes: ParamChanges
  deadlines: Deadlines
  /** Headers from the client, sent with the request and its cancellation. */
  headers?: SendOptions['headers']
  /** Called when the call ends. @param response undefined if there is no answer */
  onEnd: (call: Call, response: Response | undefined) => void
}

/**
 * A client's request as sent to an upstream: its upstream id, which is also its progress token, its deadline, and the
 * questions that the upstream asks during it. The call cancels the upstream request when its exchange is cancelled, or
 * when the deadline passes.
 */
export class Call {
  #id: number
  /** The client's request, which receives the call's notifications and questions. */
  readonly exchange: Exchange
  readonly answer: Promise<Response>
  readonly #connection: RpcConnection
  readonly #deadlines: Deadlines
  /** Headers from the client, sent with all requests of the call. */
  readonly headers: SendOptions['headers']
  readonly #adapter: CallAdapter | undefined
  readonly #paramsOf: NonNullable<CallOptions['paramsOf']>
  readonly #onEnd: CallOptions['onEnd']
  readonly #started = Date.now()
  #timer: NodeJS.Timeout | undefined
  #questions = 0
  #awaitingClientSince: number | undefined
  /** Makes the call fail. Set between two requests of the call, while the next step is awaited. */
  #giveUp: ((error: UpstreamError) => void) | undefined
  #isOver = false

  /** Sends the request immediately, unless its exchange is already cancelled. */
  constructor (connection: RpcConnection, exchange: Exchange, options: CallOptions) {
    const { changes, deadlines, headers, onEnd, paramsOf = outgoingParams } = options
    this.#connection = connection
    this.#paramsOf = paramsOf
    this.#adapter = options.adapter
    this.#onEnd = onEnd
    this.headers = headers
    this.#deadlines = deadlines
    this.exchange = exchange
    this.#id = connection.nextId
    if (exchange.cancelled !== undefined) {
      this.#isOver = true
      this.answer = Promise.reject(new UpstreamError('closed', exchange.cancelled))
      return
    }
    this.#arm()
    this.answer = this.#send(changes)
    exchange.onCancel((reason) => { this.cancel(new UpstreamError('closed', reason)) })
  }

  /** Sends the request with the next id. @param previousId the id of the call's last request; undefined: none */
  #send (changes: ParamChanges, previousId?: number): Promise<Response> {
    const { exchange } = this
    const adapter = this.#adapter
    const id = this.#id = this.#connection.nextId
    if (previousId !== undefined) adapter?.onResend(this, previousId)
    const params = adapter === undefined ? this.#paramsOf(exchange, changes, id) : adapter.params(exchange, changes, id)
    return this.#connection.request(exchange.method, params, {
      onPoll: (retry) => { exchange.pause(retry) },
      onSettled: (response) => {
        const next = response && !this.#isOver ? adapter?.onResponse(this, response) : undefined
        if (next !== undefined) return this.#sendAgain(changes, next)
        this.#end(response)
        return undefined
      }
    }, { headers: this.headers, owner: exchange.client.owner, protocol: adapter?.headers(exchange, changes) })
  }

  /** Waits for the next step, and takes it. @returns the answer to the call */
  async #sendAgain (changes: ParamChanges, next: Promise<NextStep>): Promise<Response> {
    let step: NextStep
    try {
      step = await Promise.race([next, new Promise<never>((_resolve, reject) => { this.#giveUp = reject })])
    } catch (error) {
      if (!this.#isOver) this.#end(undefined)
      throw error
    }
    this.#giveUp = undefined
    if ('response' in step) {
      this.#end(step.response)
      return step.response
    }
    this.#arm()
    return await this.#send({ ...changes, ...step.changes }, this.#id).catch((error: unknown) => {
      // An earlier request of the call may have had an effect, so the error must not allow a retry.
      throw error instanceof UpstreamError && error.didNotRun
        ? new UpstreamError('broken', error.messageForClients)
        : error
    })
  }

  /** Ends the call. @param response undefined if there is none */
  #end (response: Response | undefined): void {
    this.#isOver = true
    clearTimeout(this.#timer)
    this.#onEnd(this, response)
  }

  /** The upstream id of the current request, which is also its progress token. */
  get id (): number { return this.#id }

  get isOver (): boolean { return this.#isOver }

  /** The client that made the call. */
  get client (): Client { return this.exchange.client }

  get method (): string { return this.exchange.method }

  get params (): Readonly<Record<string, unknown>> { return this.exchange.params }

  /** The client's progress token, as JSON text; undefined if the client did not request progress. */
  get clientToken (): string | undefined {
    return progressTokenOf(this.exchange.params, this.exchange.paramsText)
  }

  /** Forwards a notification that belongs to this call to the client. */
  notify (method: string, paramsText: string): void { this.exchange.notify(method, paramsText) }

  /** Restarts the deadline after progress, if `resetTimeoutOnProgress` is set. */
  restartTimeout (): void { if (this.#deadlines.resetTimeoutOnProgress && !this.#isOver) this.#arm() }

  /** Handles a progress notification: restarts the deadline, and forwards the notification with the client's token. */
  progress (paramsText: string): void {
    this.restartTimeout()
    const token = this.clientToken
    if (token !== undefined) this.notify('notifications/progress', restoreProgressToken(paramsText, token))
  }

  /**
   * Sends a question to the client. While the question is open, only `maxTotalTimeout` applies.
   * @throws RpcError, UpstreamError
   */
  async ask (question: Question): Promise<Response> {
    this.#questions++
    this.#awaitingClientSince ??= Date.now()
    this.#arm()
    try {
      return await this.exchange.ask(question)
    } finally {
      if (--this.#questions === 0) this.#awaitingClientSince = undefined
      if (!this.#isOver) this.#arm()
    }
  }

  /**
   * The time since which the call has been waiting for the client's answer to a question, in ms since the epoch;
   * undefined: it is not waiting.
   */
  get awaitingClientSince (): number | undefined { return this.#awaitingClientSince }

  /** Ends the call without an answer, and cancels the request at the upstream. @param error the reason */
  cancel (error: UpstreamError): void {
    if (this.#isOver) return
    this.#isOver = true
    if (this.#giveUp) {
      this.#end(undefined)
      this.#giveUp(error)
      return
    }
    if (this.#adapter?.notifiesCancel !== false) {
      const { cancelParams } = this.exchange
      const params = cancelParams === undefined
        ? `{"requestId":${this.#id},"reason":${JSON.stringify(error.message)}}`
        : withMembers(cancelParams, { requestId: String(this.#id) })
      this.#connection.notify('notifications/cancelled', params, { headers: this.headers })
    }
    this.#connection.abandon(this.#id, error)
  }

  /** Starts the deadline, or restarts it. */
  #arm (): void {
    clearTimeout(this.#timer)
    const { timeout, maxTotalTimeout } = this.#deadlines
    const idle = this.#questions > 0 ? Infinity : timeout
    const left = maxTotalTimeout === undefined ? idle : Math.min(idle, maxTotalTimeout - (Date.now() - this.#started))
    if (left === Infinity) return
    this.#timer = setTimeout(() => {
      const seconds = Math.round((Date.now() - this.#started) / 100) / 10
      this.cancel(new UpstreamError('timeout', `no answer within ${seconds} s`, { isPublic: true }))
    }, Math.max(left, 0))
    this.#timer.unref()
  }
}
