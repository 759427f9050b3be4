import { UpstreamError } from '../errors.ts'
import { readBearerChallenge } from './authorization.ts'
import { HttpAnswerReader, networkFailureMessage } from './http-answer.ts'
import { HttpConnection, type HttpOptions } from './http-connection.ts'
import { HttpExchange } from './http-exchange.ts'
import { StandaloneStream } from './standalone-stream.ts'
import { httpStatusError } from './refusal.ts'
import { initializedNotificationTimeout, type Receiver, type SendOptions, type Transport } from './transport.ts'
import { createUnsolicitedCounter, noRateLimit } from './valve.ts'

export type { HttpOptions } from './http-connection.ts'

/** Max time for each step of closing: waiting for answers, and ending the session, in ms. */
const closeTimeout = 2_000

/**
 * The client side of streamable HTTP (specification: Transports, "Streamable HTTP"): each message is a POST, answered
 * with JSON or an event stream. In revisions up to 2025-11-25, the stream is resumed by `Last-Event-ID`, and a GET
 * stream carries the messages that belong to no request; since 2026-07-28, each message is self-contained and has the
 * headers in `SendOptions.protocol`.
 */
export class HttpTransport implements Transport {
  readonly hasStreams = true
  readonly #connection: HttpConnection
  readonly #standalone: StandaloneStream
  /** The value of the `Authorization` header with which the GET stream was opened. */
  #standaloneAuthorization: string | undefined
  #notifications = 0
  /** Resolves when the server has accepted the last notification, or the notification has failed. */
  #accepted: Promise<void> | undefined
  /** Whether the last message belonged to no session, so that closing has no session to end. */
  #isStateless = false

  constructor (options: HttpOptions) {
    const connection = new HttpConnection(options)
    this.#connection = connection
    this.#standalone = new StandaloneStream({
      request: (answer, lastEventId) => {
        const request =
          { method: 'GET', headers: connection.streamHeaders(undefined, lastEventId), body: null } as const
        connection.dispatch(request, answer, (sent) => { this.#standaloneAuthorization = sent })
      },
      message: (message) => { connection.receiver?.message(message, undefined) },
      refused: (status, text) => {
        if (httpStatusError(status, text, connection.session !== undefined).fault === 'expired') {
          connection.expire()
          return
        }
        if (status === 405) void connection.receiver?.restartSuspected?.()
        // The stream is reopened with the new credentials.
        const challenge = readBearerChallenge(status, undefined, this.#standaloneAuthorization, false)
        if (challenge) options.authorization?.refused(challenge).catch(() => {})
      },
      lost: (error) => {
        connection.receiver?.closed(new UpstreamError('broken', networkFailureMessage(error, options.url)))
      }
    }, connection.reading)
    connection.hasStandaloneStream = () => this.#standalone.isOpen
  }

  async start (receiver: Receiver, dialled?: () => void): Promise<void> {
    const { pace = noRateLimit } = this.#connection.reading
    this.#connection.receiver = createUnsolicitedCounter(receiver, pace)
    // The first request opens the connection.
    this.#connection.onDialled = dialled
  }

  send (text: string, options: SendOptions = {}): void {
    if (this.#connection.isClosed) return
    this.#isStateless = options.protocol !== undefined
    const key = options.id ?? `notification ${++this.#notifications}`
    const exchange = new HttpExchange(this.#connection, key, text, options)
    if (options.id === undefined) this.#accepted = new Promise((resolve) => { exchange.onAccepted = resolve })
    exchange.send()
  }

  drop (id: number): void { this.#connection.drop(id) }

  async onNegotiated (version: string): Promise<void> {
    this.#connection.setVersion(version)
    const timeout = new Promise<void>((resolve) => { setTimeout(resolve, initializedNotificationTimeout).unref() })
    await Promise.all([Promise.race([this.#accepted, timeout]), this.#standalone.open()])
  }

  async close (): Promise<void> {
    const connection = this.#connection
    if (connection.isClosed) return
    connection.close()
    this.#standalone.close()
    // Notifications, such as cancellations, are still delivered. A pending `initialize` is awaited, so that its session
    // can be ended.
    if (connection.version !== undefined || this.#isStateless) connection.dropRequests()
    await connection.whenIdle(closeTimeout)
    connection.dropAll()
    if (connection.session === undefined) return
    await new Promise<void>((resolve) => {
      const answer =
        new HttpAnswerReader({ onHead: () => 'discard', onEnd: () => { resolve() }, onError: () => { resolve() } })
      setTimeout(() => { answer.abort(); resolve() }, closeTimeout).unref()
      connection.dispatch({ method: 'DELETE', headers: connection.deleteHeaders(), body: null }, answer)
    })
  }
}
