import { UpstreamError } from './errors.ts'
import type { Client, Exchange, Question } from './exchange.ts'
import type { Response } from './message.ts'
import type { Peer } from './peer.ts'
import { outgoingParams, progressTokenOf, restoredProgress } from './progress.ts'
import type { SendOptions } from './transports/transport.ts'

/** Bounds on the time that a call takes, in ms. */
export interface Deadlines {
  /** Max time without a sign of life of the upstream. */
  timeout: number
  /** Whether progress counts as a sign of life. */
  resetTimeoutOnProgress: boolean
  /** Max time in all; undefined: unbounded. */
  maxTotalTimeout: number | undefined
}

/** Members of a call's `params` that get another value, as JSON text. */
export type Changes = Readonly<Record<string, string>>

/** How a revision of MCP makes calls. Left out of the options: as those up to 2025-11-25 do. */
export interface CallStyle {
  /** The text of a request's params. @param id its upstream id, which is also its progress token */
  params: (exchange: Exchange, changes: Changes, id: number) => string
  /** The headers that MCP prescribes for it. */
  headers: (exchange: Exchange, changes: Changes) => SendOptions['protocol']
  /** A request is cancelled by a notification, not by the end of its stream. */
  readonly notifiesCancel: boolean
  /** The call's request is sent again, under its present id. */
  sentAgain: (call: Call, former: number) => void
  /**
   * Called as soon as an answer arrives.
   * @returns undefined: the call is over with it; else what the request is sent again with, once that is known. Rejects
   * with RpcError or UpstreamError to end the call with that.
   */
  next: (call: Call, response: Response) => Promise<Changes> | undefined
}

/** The properties of a call beside those of its exchange. */
export interface CallOptions {
  style?: CallStyle
  /** Makes the params of a call without a style. Default: `outgoingParams`. */
  paramsOf?: (exchange: Exchange, changes: Changes, token: number) => string
  /** Members of the exchange's `params` that get another value, as JSON text. */
  changes: Changes
  deadlines: Deadlines
  /** Headers of the client, which go with the request and with its cancellation. */
  headers?: SendOptions['headers']
  /** Called as soon as the answer arrives; with undefined when none will come. */
  over: (call: Call, response: Response | undefined) => void
}

/** A question that waits for an exchange. */
interface ParkedQuestion {
  readonly resolve: (exchange: Exchange) => void, readonly reject: (error: UpstreamError) => void
}

const nothing: readonly ParkedQuestion[] = []

/**
 * The work upstream: an upstream id, which is also its progress token, one deadline, and its open questions. It begins
 * under one exchange and may outlive it: `detach` lets that one end, `attach` carries on under another. Only a Call
 * cancels upstream: when the exchange that it is attached to is cancelled, and when its deadline passes.
 */
export class Call {
  #id: number
  /** The client that made the call. All exchanges that the call is attached to belong to it. */
  readonly client: Client
  readonly method: string
  readonly params: Readonly<Record<string, unknown>>
  readonly answer: Promise<Response>
  readonly #peer: Peer
  readonly #deadlines: Deadlines
  readonly #headers: SendOptions['headers']
  readonly #style: CallStyle | undefined
  readonly #paramsOf: NonNullable<CallOptions['paramsOf']>
  readonly #tellOver: CallOptions['over']
  readonly #started = Date.now()
  #exchange: Exchange | undefined
  /** Questions that came while no exchange was attached. */
  #parked: ParkedQuestion[] | undefined
  #timer: NodeJS.Timeout | undefined
  #questions = 0
  #askedSince: number | undefined
  /** Rejects the answer while no request is open: what it is to be sent again with is not known yet. */
  #giveUp: ((error: UpstreamError) => void) | undefined
  #over = false

  /** Sends the request at once, unless its exchange is cancelled already. */
  constructor (
    peer: Peer, exchange: Exchange, { changes, deadlines, headers, over, style, paramsOf = outgoingParams }: CallOptions
  ) {
    this.#peer = peer
    this.#paramsOf = paramsOf
    this.#style = style
    this.#tellOver = over
    this.#headers = headers
    this.#deadlines = deadlines
    this.client = exchange.client
    this.method = exchange.method
    this.params = exchange.params
    this.#id = peer.nextId
    if (exchange.cancelled !== undefined) {
      this.#over = true
      this.answer = Promise.reject(new UpstreamError('closed', exchange.cancelled))
      return
    }
    this.#arm()
    this.answer = this.#send(exchange, changes)
    this.attach(exchange)
  }

  /** Sends the request under the next id. @param former the id that it had before */
  #send (exchange: Exchange, changes: Changes, former?: number): Promise<Response> {
    const style = this.#style
    const id = this.#id = this.#peer.nextId
    if (former !== undefined) style?.sentAgain(this, former)
    const params = style === undefined ? this.#paramsOf(exchange, changes, id) : style.params(exchange, changes, id)
    return this.#peer.request(exchange.method, params, {
      paused: (retry) => { this.#exchange?.pause(retry) },
      over: (response) => {
        const next = response && !this.#over ? style?.next(this, response) : undefined
        if (next !== undefined) return this.#sendAgain(exchange, changes, next)
        this.#end(response)
        return undefined
      }
    }, this.#headers, exchange.client.owner, style?.headers(exchange, changes))
  }

  /** Sends the request again, once it is known with what. @returns the answer to that */
  async #sendAgain (exchange: Exchange, changes: Changes, next: Promise<Changes>): Promise<Response> {
    let more: Changes
    try {
      more = await Promise.race([next, new Promise<never>((_resolve, reject) => { this.#giveUp = reject })])
    } catch (error) {
      if (!this.#over) this.#end(undefined)
      throw error
    }
    this.#giveUp = undefined
    this.#arm()
    return await this.#send(exchange, { ...changes, ...more }, this.#id).catch((error: unknown) => {
      // An earlier request of the call may have had an effect, so the call must not be repeated.
      throw error instanceof UpstreamError &&
        error.didNotRun
        ? new UpstreamError('broken', error.messageForClients)
        : error
    })
  }

  /** The call is over. @param response undefined: without an answer */
  #end (response: Response | undefined): void {
    this.#over = true
    clearTimeout(this.#timer)
    for (const { reject } of this.#unpark()) reject(isOver())
    this.#tellOver(this, response)
  }

  /** The upstream id of its request, which is also its progress token. */
  get id (): number { return this.#id }

  get over (): boolean { return this.#over }

  /** The exchange that it is attached to; undefined while it is detached. */
  get exchange (): Exchange | undefined { return this.#exchange }

  /** The client's progress token, as JSON text; undefined when the client wants no progress. */
  get clientToken (): string | undefined {
    return this.#exchange && progressTokenOf(this.#exchange.params, this.#exchange.paramsText)
  }

  /** Carries on under this exchange: it gets notifications and questions, and its cancellation cancels the call. */
  attach (exchange: Exchange): void {
    this.#exchange = exchange
    exchange.onCancel((reason) => { if (this.#exchange === exchange) this.cancel(new UpstreamError('closed', reason)) })
    for (const { resolve } of this.#unpark()) resolve(exchange)
  }

  /**
   * Lets its exchange end. The call goes on: notifications are dropped and questions wait until it is attached again.
   */
  detach (): void {
    this.#exchange = undefined
  }

  /** Sends a notification that belongs to this call to the client. */
  notify (method: string, paramsText: string): void {
    this.#exchange?.notify(method, paramsText)
  }

  /** The upstream reports progress: re-arms the deadline, and passes it on under the client's own token. */
  progress (paramsText: string): void {
    if (this.#deadlines.resetTimeoutOnProgress && !this.#over) this.#arm()
    const token = this.clientToken
    if (token !== undefined) this.notify('notifications/progress', restoredProgress(paramsText, token))
  }

  /**
   * Puts a question to the client. Until it is answered, `timeout` does not run: only `maxTotalTimeout` does.
   * @throws RpcError, UpstreamError
   */
  async ask (question: Question): Promise<Response> {
    this.#questions++
    this.#askedSince ??= Date.now()
    this.#arm()
    try {
      const exchange = this.#exchange ?? await this.#attached(question.signal)
      return await exchange.ask(question)
    } finally {
      if (--this.#questions === 0) this.#askedSince = undefined
      if (!this.#over) this.#arm()
    }
  }

  /**
   * Since when it has waited for its client's answer to a question, in ms since the epoch; undefined: it does not wait
   * for one.
   */
  get askedSince (): number | undefined { return this.#askedSince }

  /** Ends the call without an answer, and sends the upstream the reason. */
  cancel (error: UpstreamError): void {
    if (this.#over) return
    this.#over = true
    if (this.#giveUp) {
      this.#end(undefined)
      this.#giveUp(error)
      return
    }
    if (this.#style?.notifiesCancel !== false) {
      const params = `{"requestId":${this.#id},"reason":${JSON.stringify(error.message)}}`
      this.#peer.notify('notifications/cancelled', params, this.#headers)
    }
    this.#peer.abandon(this.#id, error)
  }

  /** The next exchange that it is attached to. Rejects when the question is withdrawn, and when the call ends. */
  async #attached (signal: AbortSignal): Promise<Exchange> {
    if (this.#over) throw isOver()
    return await new Promise((resolve, reject) => {
      (this.#parked ??= []).push({ resolve, reject })
      signal.addEventListener(
        'abort', () => { reject(new UpstreamError('closed', String(signal.reason))) }, { once: true }
      )
    })
  }

  #unpark (): readonly ParkedQuestion[] {
    const parked = this.#parked ?? nothing
    this.#parked = undefined
    return parked
  }

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

const isOver = (): UpstreamError => new UpstreamError('closed', 'the call is over')
