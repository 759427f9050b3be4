import { UpstreamError } from '../errors.ts'
import { carriesMessage, EventStreamParser } from '../event-stream.ts'
import type { Message } from '../message.ts'
import { readBearerChallenge } from './authorization.ts'
import { HttpAnswerReader, networkFailureMessage } from './http-answer.ts'
import { HttpConnection, type HttpOptions } from './http-connection.ts'
import { resolveRedirect } from './redirect.ts'
import { httpStatusError } from './refusal.ts'
import {
  initializedNotificationTimeout, guessAnsweredId, parseMessages, transportLimits, type Receiver, type SendOptions,
  type Transport
} from './transport.ts'
import { createUnsolicitedCounter, noRateLimit } from './valve.ts'

/**
 * The client side of HTTP+SSE (specification 2024-11-05: Transports, "HTTP with SSE"): one GET stream carries all
 * messages from the server; its first event contains the URL to POST to. Deprecated, but still in use.
 */
export class SseTransport implements Transport {
  readonly #connection: HttpConnection
  #stream: HttpAnswerReader | undefined
  #rejectStart: ((error: UpstreamError) => void) | undefined
  #hasEndpoint = false
  /** Whether the endpoint has accepted a message. */
  #hasAccepted = false
  #notifications = 0

  constructor (options: HttpOptions) { this.#connection = new HttpConnection(options) }

  #receive (data: string): void {
    const { reading, receiver } = this.#connection
    let messages: Message[]
    try {
      messages = parseMessages(data)
    } catch {
      reading.pace?.count('noise', data.length)
      // Other clients' requests are not affected by a message that cannot be parsed.
      const id = guessAnsweredId(data)
      if (id === undefined) return
      receiver?.failed(id, new UpstreamError('broken', 'the answer is not a valid JSON-RPC ' +
        'message', { isPublic: true }))
      return
    }
    for (const each of messages) receiver?.message(each, undefined)
  }

  async start (receiver: Receiver, dialled?: () => void): Promise<void> {
    const connection = this.#connection
    const { options: { url: configured, authorization }, reading } = connection
    connection.receiver = createUnsolicitedCounter(receiver, reading.pace ?? noRateLimit)
    await new Promise<void>((resolve, reject) => {
      this.#rejectStart = reject
      const end = (error: UpstreamError): void => {
        reject(error)
        connection.receiver?.closed(error)
        connection.close()
      }
      let streamUrl = configured
      const parser = new EventStreamParser((event) => {
        const { data } = event
        if (event.event === 'endpoint') {
          const endpoint = endpointOf(data, streamUrl)
          if (!endpoint) {
            this.#stream?.abort()
            end(new UpstreamError('refused', 'the endpoint in the upstream\'s event stream is not a valid ' +
              'address', { isPublic: true }))
            return
          }
          if (endpoint.origin !== configured.origin) {
            this.#stream?.abort()
            end(new UpstreamError('refused', 'the endpoint in the upstream\'s event stream has another ' +
              'origin', { isPublic: true }))
            return
          }
          connection.url = endpoint
          this.#hasEndpoint = true
          resolve()
        } else if (carriesMessage(event)) this.#receive(data)
      }, transportLimits.message)
      const open = (url: URL, hops: number, isRetry = false): void => {
        streamUrl = connection.url = url
        let status = 0
        let location: string | undefined
        let wwwAuthenticate: string | undefined
        let sentAuthorization: string | undefined
        this.#stream = new HttpAnswerReader({
          onHead: (code, type, _session, to, challenge) => {
            status = code
            location = to
            wwwAuthenticate = challenge
            return code === 200 && type.startsWith('text/event-stream') ? parser : 'discard'
          },
          onStart: dialled,
          onEnd: () => {
            const next = resolveRedirect(url, 'GET', status, location, hops)
            const challenge = readBearerChallenge(status, wwwAuthenticate, sentAuthorization, isRetry)
            if (next) open(next, hops + 1, isRetry)
            else if (challenge && authorization) {
              authorization.refused(challenge).then((sendAgain) => {
                if (connection.isClosed) return
                if (sendAgain) open(url, hops, true)
                else end(httpStatusError(status, ''))
              }, (error: unknown) => { end(error instanceof UpstreamError ? error : httpStatusError(status, '')) })
            } else if (status === 401) {
              end(new UpstreamError('unauthorized', 'the upstream requires credentials (HTTP 401): check the ' +
                'configured headers'))
            } else if (this.#hasEndpoint) {
              end(new UpstreamError('broken', 'the upstream ended its event stream', { isPublic: true }))
            } else if (status >= 500) end(httpStatusError(status, ''))
            else end(new UpstreamError('refused', `no event stream at this address (HTTP ${status})`, { status }))
          },
          onError: (error, sent) => { end(this.#failure(error, sent)) }
        }, reading)
        const request =
          { method: 'GET', headers: connection.streamHeaders(undefined, undefined), body: null } as const
        connection.dispatch(request, this.#stream, (sent) => { sentAuthorization = sent })
      }
      open(configured, 0)
    })
  }

  send (text: string, { id }: SendOptions = {}): void {
    const connection = this.#connection
    const fail = (error: UpstreamError): void => { if (id !== undefined) connection.receiver?.failed(id, error) }
    if (!this.#hasEndpoint || connection.isClosed) {
      fail(new UpstreamError('unreachable', 'the event stream is closed', { isPublic: true }))
      return
    }
    this.#post(id ?? `notification ${++this.#notifications}`, text, fail, 0)
  }

  #post (
    key: number | string, text: string, fail: (error: UpstreamError) => void, hops: number, isRetry = false
  ): void {
    const connection = this.#connection
    const { url, options: { authorization } } = connection
    let status = 0
    let location: string | undefined
    let wwwAuthenticate: string | undefined
    let sentAuthorization: string | undefined
    const post = new HttpAnswerReader({
      onHead: (code, _type, _session, to, challenge) => {
        status = code
        location = to
        wwwAuthenticate = challenge
        return 'discard'
      },
      onEnd: () => {
        connection.removePending(key)
        const next = resolveRedirect(url, 'POST', status, location, hops)
        const challenge = readBearerChallenge(status, wwwAuthenticate, sentAuthorization, isRetry)
        if (next) {
          connection.url = next
          this.#post(key, text, fail, hops + 1, isRetry)
        } else if (challenge && authorization) {
          authorization.refused(challenge).then((sendAgain) => {
            if (sendAgain && !connection.isClosed) this.#post(key, text, fail, hops, true)
            else fail(httpStatusError(status, ''))
          }, (error: unknown) => { fail(error instanceof UpstreamError ? error : httpStatusError(status, '')) })
        } else if (status < 300) this.#hasAccepted = true
        else fail(status === 401 ? httpStatusError(status, '') : this.#refusal(status, url))
      },
      onError: (error, sent) => {
        connection.removePending(key)
        fail(this.#failure(error, sent))
      }
    })
    connection.addPending(key, post)
    const request = { method: 'POST', headers: connection.postHeaders(undefined, undefined), body: text } as const
    connection.dispatch(request, post, (sent) => { sentAuthorization = sent })
  }

  /**
   * Creates the error for a refused POST. If no POST was accepted before, the endpoint is probably wrong. Otherwise,
   * 400, 404 and 410 mean that the session is lost.
   */
  #refusal (status: number, { origin, pathname }: URL): UpstreamError {
    const plain = httpStatusError(status, '')
    if (!this.#hasAccepted) {
      const where = `${origin}${pathname}, the endpoint in its event stream`
      return new UpstreamError(plain.fault, `${plain.message} at ${where}`, { status })
    }
    const isGone = status === 404 || status === 410 || status === 400
    return isGone ? new UpstreamError('expired', 'the upstream no longer knows the session', { isPublic: true }) : plain
  }

  #failure (error: Error, sent: boolean): UpstreamError {
    return error instanceof UpstreamError
      ? error
      : new UpstreamError(sent ? 'broken' : 'unreachable', networkFailureMessage(error, this.#connection.options.url))
  }

  drop (): void {}

  async onNegotiated (): Promise<void> { await this.#connection.whenIdle(initializedNotificationTimeout) }

  async close (): Promise<void> {
    this.#connection.close()
    this.#rejectStart?.(new UpstreamError('closed', 'the link was closed'))
    this.#stream?.abort()
    this.#connection.dropAll()
  }
}

/** Reads the URL in an `endpoint` event; undefined if it is invalid. */
const endpointOf = (data: string, base: URL): URL | undefined =>
  URL.canParse(data, base.href) ? new URL(data, base) : undefined
