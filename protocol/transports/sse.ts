import { UpstreamError } from '../errors.ts'
import { carriesMessage, EventStreamParser } from '../event-stream.ts'
import { defaultHeaders } from '../instance.ts'
import type { Message } from '../message.ts'
import { readBearerChallenge, sendWithAuthorization } from './authorization.ts'
import { CookieJar } from './cookies.ts'
import { HttpAnswerReader, networkFailureMessage } from './http-answer.ts'
import type { HttpOptions } from './http.ts'
import { resolveRedirect } from './redirect.ts'
import { httpStatusError } from './refusal.ts'
import {
  initializedNotificationTimeout, guessAnsweredId, parseMessages, transportLimits, type Receiver, type SendOptions,
  type Transport
} from './transport.ts'
import {
  createUnsolicitedCounter, maxInFlight, noRateLimit, type ReadingOptions, withSlowServerPause
} from './valve.ts'

/**
 * The client side of HTTP+SSE (specification 2024-11-05: Transports, "HTTP with SSE"): one GET stream carries all
 * messages from the server; its first event contains the URL to POST to. Deprecated, but still in use.
 */
export class SseTransport implements Transport {
  readonly #options: HttpOptions
  readonly #reading: ReadingOptions
  readonly #cookies: CookieJar
  readonly #posts = new Set<HttpAnswerReader>()
  /** Called when all POSTs have been answered or have failed. */
  #onAccepted: (() => void) | undefined
  #stream: HttpAnswerReader | undefined
  #rejectStart: ((error: UpstreamError) => void) | undefined
  #endpoint: URL | undefined
  /** Whether the endpoint has accepted a message. */
  #hasAccepted = false
  #receiver: Receiver | undefined
  #closed = false

  constructor (options: HttpOptions) {
    this.#options = options
    this.#cookies = new CookieJar(options.headers.cookie)
    // `#posts` includes the POSTs of requests, so the limit is higher than `maxInFlight`.
    const pace = withSlowServerPause(() => this.#posts.size >= 4 * maxInFlight, options.reading?.pace)
    this.#reading = { ...options.reading, pace }
  }

  #receive (data: string): void {
    let messages: Message[]
    try {
      messages = parseMessages(data)
    } catch {
      this.#reading.pace?.count('noise', data.length)
      // Other clients' requests are not affected by a message that cannot be parsed.
      const id = guessAnsweredId(data)
      if (id === undefined) return
      this.#receiver?.failed(id, new UpstreamError('broken', 'the answer is not a valid JSON-RPC ' +
        'message', { isPublic: true }))
      return
    }
    for (const each of messages) this.#receiver?.message(each, undefined)
  }

  async start (receiver: Receiver, dialled?: () => void): Promise<void> {
    this.#receiver = createUnsolicitedCounter(receiver, this.#reading.pace ?? noRateLimit)
    await new Promise<void>((resolve, reject) => {
      this.#rejectStart = reject
      const end = (error: UpstreamError): void => {
        reject(error)
        if (!this.#closed) this.#receiver?.closed(error)
        this.#closed = true
      }
      let streamUrl = this.#options.url
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
          if (endpoint.origin !== this.#options.url.origin) {
            this.#stream?.abort()
            end(new UpstreamError('refused', 'the endpoint in the upstream\'s event stream has another ' +
              'origin', { isPublic: true }))
            return
          }
          this.#endpoint = endpoint
          resolve()
        } else if (carriesMessage(event)) this.#receive(data)
      }, transportLimits.message)
      const open = (url: URL, hops: number, isRetry = false): void => {
        streamUrl = url
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
            else if (challenge && this.#options.authorization) {
              this.#options.authorization.refused(challenge).then((sendAgain) => {
                if (this.#closed) return
                if (sendAgain) open(url, hops, true)
                else end(httpStatusError(status, ''))
              }, (error: unknown) => { end(error instanceof UpstreamError ? error : httpStatusError(status, '')) })
            } else if (status === 401) {
              end(new UpstreamError('unauthorized', 'the upstream requires credentials (HTTP 401): check the ' +
                'configured headers'))
            } else if (this.#endpoint) {
              end(new UpstreamError('broken', 'the upstream ended its event stream', { isPublic: true }))
            } else if (status >= 500) end(httpStatusError(status, ''))
            else end(new UpstreamError('refused', `no event stream at this address (HTTP ${status})`, { status }))
          },
          onError: (error, sent) => { end(this.#failure(error, sent)) }
        }, this.#reading)
        this.#dispatch(url, 'GET', { accept: 'text/event-stream' }, null, this.#stream, (sent) => {
          sentAuthorization = sent
        })
      }
      open(this.#options.url, 0)
    })
  }

  send (text: string, options?: SendOptions): void {
    const { id } = options ?? {}
    const fail = (error: UpstreamError): void => { if (id !== undefined) this.#receiver?.failed(id, error) }
    if (!this.#endpoint || this.#closed) {
      fail(new UpstreamError('unreachable', 'the event stream is closed', { isPublic: true }))
      return
    }
    this.#post(this.#endpoint, text, fail, 0)
  }

  #post (url: URL, text: string, fail: (error: UpstreamError) => void, hops: number, isRetry = false): void {
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
        this.#removePost(post)
        const next = resolveRedirect(url, 'POST', status, location, hops)
        const challenge = readBearerChallenge(status, wwwAuthenticate, sentAuthorization, isRetry)
        if (next) {
          this.#endpoint = next
          this.#post(next, text, fail, hops + 1, isRetry)
        } else if (challenge && this.#options.authorization) {
          this.#options.authorization.refused(challenge).then((sendAgain) => {
            if (sendAgain && !this.#closed) this.#post(url, text, fail, hops, true)
            else fail(httpStatusError(status, ''))
          }, (error: unknown) => { fail(error instanceof UpstreamError ? error : httpStatusError(status, '')) })
        } else if (status < 300) this.#hasAccepted = true
        else fail(status === 401 ? httpStatusError(status, '') : this.#refusal(status, url))
      },
      onError: (error, sent) => {
        this.#removePost(post)
        fail(this.#failure(error, sent))
      }
    })
    this.#posts.add(post)
    this.#dispatch(url, 'POST', { 'content-type': 'application/json' }, text, post, (sent) => {
      sentAuthorization = sent
    })
  }

  #removePost (post: HttpAnswerReader): void {
    this.#posts.delete(post)
    if (this.#posts.size === 0) this.#onAccepted?.()
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
      : new UpstreamError(sent ? 'broken' : 'unreachable', networkFailureMessage(error, this.#options.url))
  }

  drop (): void {}

  async onNegotiated (): Promise<void> {
    if (this.#posts.size === 0) return
    await new Promise<void>((resolve) => {
      this.#onAccepted = resolve
      setTimeout(resolve, initializedNotificationTimeout).unref()
    })
  }

  async close (): Promise<void> {
    this.#closed = true
    this.#receiver = undefined
    this.#rejectStart?.(new UpstreamError('closed', 'the link was closed'))
    this.#stream?.abort()
    for (const post of this.#posts) post.abort()
  }

  /** Sends an HTTP request. @param onSent called with the value of the request's `Authorization` header */
  #dispatch (
    url: URL,
    method: 'GET' | 'POST',
    headers: Record<string, string>,
    body: string | null,
    answer: HttpAnswerReader,
    onSent: (sent: string | undefined) => void
  ): void {
    const { authorization, dispatcher } = this.#options
    sendWithAuthorization(authorization, answer, (sent) => {
      onSent(sent)
      answer.cookies = this.#cookies
      const { header: cookie } = this.#cookies
      dispatcher.dispatch(
        {
          origin: url.origin,
          path: url.pathname + url.search,
          method,
          headers: {
            ...defaultHeaders,
            ...this.#options.headers,
            ...headers,
            ...(sent === undefined ? {} : { authorization: sent }),
            ...(cookie === undefined ? {} : { cookie })
          },
          body,
          headersTimeout: 0,
          bodyTimeout: 0
        },
        answer
      )
    })
  }
}

/** Reads the URL in an `endpoint` event; undefined if it is invalid. */
const endpointOf = (data: string, base: URL): URL | undefined =>
  URL.canParse(data, base.href) ? new URL(data, base) : undefined
