import type { Dispatcher } from 'undici'
import { UpstreamError } from '../errors.ts'
import { defaultHeaders } from '../instance.ts'
import type { Response } from '../message.ts'
import { RequestTable } from '../table.ts'
import { type AuthorizationSource, sendWithAuthorization } from './authorization.ts'
import { CookieJar } from './cookies.ts'
import type { HttpAnswerReader } from './http-answer.ts'
import type { Receiver, SendOptions } from './transport.ts'
import { maxInFlight, type ReadingOptions, withSlowServerPause } from './valve.ts'

export interface HttpOptions {
  url: URL
  /** Extra headers, sent with every request. */
  headers: Record<string, string>
  /** Returns the client's current headers, for messages without their own. `headers` must not have the same names. */
  clientHeaders?: () => SendOptions['headers']
  /** Supplies `Authorization`, which the other headers must then not contain. Default: none is added. */
  authorization?: AuthorizationSource
  /** Opens the sockets; its outbound policy decides which addresses may be reached. */
  dispatcher: Dispatcher
  reading?: ReadingOptions
}

export interface HttpRequest {
  readonly method: 'POST' | 'GET' | 'DELETE'
  /** Alternating names and values. */
  readonly headers: string[]
  readonly body: string | null
}

const postHeaders = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' } as const
/**
 * Creates the headers that only GETs have. An event id may contain any characters; it is sent as UTF-8, or omitted if
 * it contains control characters.
 */
const getHeaders = (lastEventId: string | undefined): Record<string, string> => ({
  accept: 'text/event-stream',
  ...(lastEventId === undefined || /\p{Cc}/u.test(lastEventId)
    ? {}
    : { 'last-event-id': Buffer.from(lastEventId).toString('latin1') })
})

/** What all HTTP requests of one connection to an upstream share: URL, session, revision, credentials, cookies. */
export class HttpConnection {
  readonly options: HttpOptions
  readonly reading: ReadingOptions
  receiver: Receiver | undefined
  /** Whether the standalone stream is open. */
  hasStandaloneStream = (): boolean => false
  /** Called when a socket is open and a request is being sent. */
  onDialled: (() => void) | undefined
  /** The messages that wait for an answer, by request id or another key. */
  readonly #pending = new RequestTable<number | string, { abort: () => void }>()
  /** The number of pending messages that are notifications or answers. */
  #inFlight = 0
  readonly #cookies: CookieJar
  readonly #timers = new Set<NodeJS.Timeout>()
  #url: URL
  #origin = ''
  #path = ''
  #session: string | undefined
  #version: string | undefined
  /** The headers of POSTs without headers of a client: in the session, and outside it (`#statelessHeaders`). */
  #sessionHeaders: string[] = []
  readonly #statelessHeaders: string[]
  #isClosed = false
  #isExpired = false
  /** The running check whether the upstream still knows the session. */
  #check: Promise<void> | undefined
  /** The last error of the upstream that can mean that it does not know the session. */
  #suspicion: UpstreamError | undefined
  /** Called when no message waits for an answer. */
  #onIdle: (() => void) | undefined

  constructor (options: HttpOptions) {
    const pace = withSlowServerPause(() => this.#inFlight >= maxInFlight, options.reading?.pace)
    const { cookie, ...headers } = options.headers
    this.options = { ...options, headers }
    this.#cookies = new CookieJar(cookie)
    this.reading = { ...options.reading, pace }
    this.#url = options.url
    this.url = options.url
    this.#statelessHeaders = Object.entries({ ...defaultHeaders, ...headers, ...postHeaders }).flat()
    this.#refreshHeaders()
  }

  /** The URL for requests; after a redirect, the redirect's target. */
  get url (): URL { return this.#url }

  set url (url: URL) {
    this.#url = url
    this.#origin = url.origin
    this.#path = url.pathname + url.search
  }

  get session (): string | undefined { return this.#session }
  get version (): string | undefined { return this.#version }

  startSession (session: string): void {
    this.#session = session
    this.#refreshHeaders()
  }

  setVersion (version: string): void {
    this.#version = version
    this.#refreshHeaders()
  }

  /** Creates the headers of a POST. @param passed `SendOptions.headers` @param protocol `SendOptions.protocol` */
  postHeaders (passed: SendOptions['headers'], protocol: SendOptions['protocol']): string[] {
    if (passed !== undefined || this.options.clientHeaders !== undefined) {
      return this.#headers(passed, protocol, postHeaders)
    }
    if (protocol === undefined) return this.#sessionHeaders
    const headers = [...this.#statelessHeaders]
    for (const name in protocol) {
      // MCP's header replaces a configured one of the same name.
      if (Object.hasOwn(this.options.headers, name)) return this.#headers(passed, protocol, postHeaders)
      headers.push(name, protocol[name] ?? '')
    }
    return headers
  }

  /** Creates the headers of a GET. @param lastEventId the event after which the stream continues */
  streamHeaders (passed: SendOptions['headers'], lastEventId: string | undefined): string[] {
    return this.#headers(passed, undefined, getHeaders(lastEventId))
  }

  deleteHeaders (): string[] { return this.#headers(undefined, undefined, {}) }

  /**
   * Creates the headers of a request. MCP's headers replace configured ones of the same name.
   * @param passed headers of the client that sends the message; undefined: use `HttpOptions.clientHeaders`
   * @param protocol headers that MCP prescribes; undefined: the message belongs to the session
   * @param more headers that the HTTP method requires
   */
  #headers (
    passed: SendOptions['headers'], protocol: SendOptions['protocol'], more: Readonly<Record<string, string>>
  ): string[] {
    const headers = {
      ...defaultHeaders,
      ...passed ?? this.options.clientHeaders?.(),
      ...this.options.headers,
      ...protocol,
      ...more,
      ...(protocol !== undefined || this.#session === undefined ? {} : { 'mcp-session-id': this.#session }),
      ...(protocol !== undefined || this.#version === undefined ? {} : { 'mcp-protocol-version': this.#version })
    }
    return Object.entries(headers).flat()
  }

  #refreshHeaders (): void {
    this.#sessionHeaders = this.#headers(undefined, undefined, postHeaders)
  }

  /** Sends an HTTP request. @param onSent called with the value of the request's `Authorization` header */
  dispatch (
    { method, headers, body }: HttpRequest, answer: HttpAnswerReader, onSent?: (sent: string | undefined) => void
  ): void {
    const { authorization, dispatcher } = this.options
    sendWithAuthorization(authorization, answer, (sent) => {
      onSent?.(sent)
      answer.cookies = this.#cookies
      const { header: cookie } = this.#cookies
      const authorized = sent === undefined ? headers : [...headers, 'authorization', sent]
      dispatcher.dispatch(
        {
          origin: this.#origin,
          path: this.#path,
          method,
          headers: cookie === undefined ? authorized : [...authorized, 'cookie', cookie],
          body,
          headersTimeout: 0,
          bodyTimeout: 0
        },
        answer
      )
    })
  }

  /** Adds a message that waits for an answer. @param key the id of a request; a string for other messages */
  addPending (key: number | string, waiting: { abort: () => void }): void {
    this.#pending.set(key, waiting)
    if (typeof key === 'string') this.#inFlight++
  }

  isPending (key: number | string): boolean { return this.#pending.has(key) }

  /** Removes a message that has been answered, or has failed. */
  removePending (key: number | string): void {
    if (this.#pending.take(key) !== undefined && typeof key === 'string') this.#inFlight--
    if (this.#pending.size === 0) this.#onIdle?.()
    if (this.#isExpired) this.expire()
  }

  /** Aborts a message that waits for an answer. */
  drop (key: number | string): void {
    const waiting = this.#pending.take(key)
    if (waiting !== undefined && typeof key === 'string') this.#inFlight--
    waiting?.abort()
    if (this.#pending.size === 0) this.#onIdle?.()
    // `expire` runs later, since the caller must first fail the request with an error of its own.
    if (this.#isExpired) this.schedule(0, () => { this.expire() })
  }

  dropAll (): void { for (const key of this.#pending.keys()) this.drop(key) }

  /** Aborts the requests that wait for an answer, but not the notifications. */
  dropRequests (): void { for (const key of this.#pending.keys()) if (typeof key === 'number') this.drop(key) }

  /** Resolves when no message waits for an answer, at the latest after a timeout. @param timeout in ms */
  async whenIdle (timeout: number): Promise<void> {
    if (this.#pending.size === 0) return
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve
      setTimeout(resolve, timeout).unref()
    })
  }

  /** Records that the upstream has ended the session: `removePending` then calls `expire`. */
  markExpired (): void { this.#isExpired = true }

  /**
   * Passes an answer to the receiver.
   * @param suspicion the error to report instead if the upstream no longer knows the session, as the answer may mean:
   *   tools, too, say that a session was not found. Undefined if the answer cannot mean that
   */
  deliver (answer: Response, id: number, suspicion?: UpstreamError): void {
    if (suspicion === undefined) this.receiver?.message(answer, id)
    else {
      this.#suspicion = suspicion
      void this.#checkSession().then(() => {
        if (this.#isExpired) this.receiver?.failed(id, suspicion)
        else this.receiver?.message(answer, id)
      })
    }
  }

  /** Checks by a request whether the upstream still knows the session. Simultaneous checks are one. */
  async #checkSession (): Promise<void> {
    const check = this.#check ??= this.receiver?.restartSuspected?.()
    await check
    this.#check = undefined
  }

  /** Handles the end of the session by the upstream: reports it to the receiver once no message waits for an answer. */
  expire (): void {
    this.#isExpired = true
    if (this.#pending.size === 0) {
      this.receiver?.closed(this.#suspicion ?? new UpstreamError(
        'expired', 'the upstream no longer knows the session', { isPublic: true }
      ))
    }
  }

  /** Runs a function after a delay, unless the connection is closed first. @param ms the delay */
  schedule (ms: number, run: () => void): void {
    const timer = setTimeout(() => { this.#timers.delete(timer); run() }, ms)
    this.#timers.add(timer)
    timer.unref()
  }

  get isClosed (): boolean { return this.#isClosed }

  /** Stops notifying the receiver, and cancels all scheduled functions. */
  close (): void {
    this.#isClosed = true
    this.receiver = undefined
    for (const timer of this.#timers) clearTimeout(timer)
  }
}
