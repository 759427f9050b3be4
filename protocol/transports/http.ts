import { UpstreamError } from '../errors.ts'
import { bearerChallenge } from './authorization.ts'
import { HttpAnswer, networkFailure } from './http-answer.ts'
import { HttpConnection, type HttpOptions } from './http-connection.ts'
import { HttpExchange } from './http-exchange.ts'
import { NewsStream } from './news-stream.ts'
import { refusal } from './refusal.ts'
import type { Receiver, SendOptions, Transport } from './transport.ts'
import { counting, noPace } from './valve.ts'

export type { HttpOptions } from './http-connection.ts'

/** Max time for each of the two steps of closing, in ms. */
const closeTimeout = 2_000

/**
 * The client side of streamable HTTP (specification: Transports, "Streamable HTTP"): a POST for each message, whose
 * answer is JSON or an event stream. In revisions to 2025-11-25 the stream is resumed by `Last-Event-ID`, and a GET
 * stream has the messages that belong to no request; since 2026-07-28, each message has the headers of
 * `SendOptions.protocol` instead, and stands for itself.
 */
export class HttpTransport implements Transport {
  readonly hasStreams = true
  readonly #connection: HttpConnection
  readonly #news: NewsStream
  /** The value of `Authorization` that the GET stream was opened with. */
  #newsSent: string | undefined
  #notifications = 0
  /** The last message belonged to no session: nothing is left to end then. */
  #isStateless = false

  constructor (options: HttpOptions) {
    const connection = new HttpConnection(options)
    this.#connection = connection
    this.#news = new NewsStream({
      request: (answer, lastEventId) => {
        const request =
          { method: 'GET', headers: connection.streamHeaders(undefined, lastEventId), body: null } as const
        connection.dispatch(request, answer, (sent) => { this.#newsSent = sent })
      },
      message: (message) => { connection.receiver?.message(message, undefined) },
      refused: (status, text) => {
        if (refusal(status, text, connection.session !== undefined).fault === 'expired') connection.expire()
        else if (status === 405) connection.receiver?.doubted?.()
        // The stream is opened again with the credentials that come of it.
        const challenge = bearerChallenge(status, undefined, this.#newsSent, false)
        if (challenge) options.authorization?.refused(challenge).catch(() => {})
      },
      lost: (error) => { connection.receiver?.closed(new UpstreamError('broken', networkFailure(error, options.url))) }
    }, connection.reading)
  }

  async start (receiver: Receiver, dialled?: () => void): Promise<void> {
    const { pace = noPace } = this.#connection.reading
    this.#connection.receiver = counting(receiver, pace)
    // The connection is opened for the first request.
    this.#connection.dialled = dialled
  }

  send (text: string, options: SendOptions = {}): void {
    if (this.#connection.isClosed) return
    this.#isStateless = options.protocol !== undefined
    const key = options.id ?? `notification ${++this.#notifications}`
    new HttpExchange(this.#connection, key, text, options).send()
  }

  drop (id: number): void { this.#connection.drop(id) }

  async agreed (version: string): Promise<void> {
    this.#connection.agreed(version)
    await this.#news.open()
  }

  async close (): Promise<void> {
    const connection = this.#connection
    if (connection.isClosed) return
    connection.close()
    this.#news.close()
    // Notifications that were just sent, such as cancellations, are still delivered. An `initialize` is waited for, to
    // end its session.
    if (connection.version !== undefined || this.#isStateless) connection.dropRequests()
    await connection.idle(closeTimeout)
    connection.dropAll()
    if (connection.session === undefined) return
    await new Promise<void>((resolve) => {
      const answer =
        new HttpAnswer({ onHead: () => 'discard', onEnd: () => { resolve() }, onError: () => { resolve() } })
      setTimeout(() => { answer.abort(); resolve() }, closeTimeout).unref()
      connection.dispatch({ method: 'DELETE', headers: connection.bareHeaders(), body: null }, answer)
    })
  }
}
