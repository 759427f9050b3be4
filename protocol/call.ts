import { UpstreamError } from './errors.ts'
import type { Exchange } from './exchange.ts'
import type { Response } from './message.ts'
import type { Peer } from './peer.ts'
import type { SendOptions } from './transports/transport.ts'

/** How long a call may take, in ms. */
export interface Deadlines {
  /** Without a sign of life. */
  timeout: number
  /** Whether progress is a sign of life. */
  resetTimeoutOnProgress: boolean
  /** In all; undefined: no cap. */
  maxTotalTimeout: number | undefined
}

/**
 * The work upstream of one exchange: an upstream id and one deadline. Only a Call cancels upstream, and it does so when its
 * exchange is cancelled and when its deadline passes.
 */
export class Call {
  readonly id: number
  readonly exchange: Exchange
  readonly answer: Promise<Response>
  readonly #peer: Peer
  readonly #deadlines: Deadlines
  readonly #headers: SendOptions['headers']
  readonly #started = Date.now()
  #timer: NodeJS.Timeout | undefined
  #questions = 0
  #over = false

  /**
   * Sends the request at once.
   * @param params its params as text, made with the progress token (= upstream id) that they carry
   * @param over told at once when the answer is there, or (undefined) will not come
   * @param headers of the client, which go with it and with its cancellation
   */
  constructor (
    peer: Peer,
    exchange: Exchange,
    params: (token: number) => string,
    deadlines: Deadlines,
    over: (call: Call, response: Response | undefined) => void,
    headers?: SendOptions['headers']
  ) {
    this.#peer = peer
    this.#headers = headers
    this.#deadlines = deadlines
    this.exchange = exchange
    this.id = peer.nextId
    if (exchange.cancelled !== undefined) {
      // Nobody wants it any more: it is not even sent.
      this.#over = true
      this.answer = Promise.reject(new UpstreamError('closed', exchange.cancelled))
      return
    }
    this.#arm()
    this.answer = peer.request(
      exchange.method,
      params(this.id),
      {
        paused: (retry) => {
          exchange.pause(retry)
        },
        over: (response) => {
          this.#over = true
          clearTimeout(this.#timer)
          over(this, response)
        }
      },
      headers
    )
    exchange.onCancel((reason) => {
      this.cancel(new UpstreamError('closed', reason))
    })
  }

  get over (): boolean {
    return this.#over
  }

  /** The upstream said that it is still at work. */
  progressed (): void {
    if (this.#deadlines.resetTimeoutOnProgress && !this.#over) this.#arm()
  }

  /** Runs a question back to the client: while a person thinks, the upstream is not silent; only the hard cap goes on. */
  async asking<Result>(question: () => Promise<Result>): Promise<Result> {
    this.#questions++
    this.#arm()
    try {
      return await question()
    } finally {
      this.#questions--
      if (!this.#over) this.#arm()
    }
  }

  /** Gives the call up and tells the upstream why. */
  cancel (error: UpstreamError): void {
    if (this.#over) return
    this.#over = true
    this.#peer.notify('notifications/cancelled', `{"requestId":${this.id},"reason":${JSON.stringify(error.message)}}`, this.#headers)
    this.#peer.abandon(this.id, error)
  }

  #arm (): void {
    clearTimeout(this.#timer)
    const { timeout, maxTotalTimeout } = this.#deadlines
    const idle = this.#questions > 0 ? Infinity : timeout
    const left = maxTotalTimeout === undefined ? idle : Math.min(idle, maxTotalTimeout - (Date.now() - this.#started))
    if (left === Infinity) return
    this.#timer = setTimeout(
      () => {
        this.cancel(new UpstreamError('timeout', `no answer within ${Math.round((Date.now() - this.#started) / 100) / 10} s`))
      },
      Math.max(left, 0)
    )
    this.#timer.unref()
  }
}
