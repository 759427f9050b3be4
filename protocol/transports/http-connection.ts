import type { Dispatcher } from 'undici'
import { UpstreamError } from '../errors.ts'
import { Table } from '../table.ts'
import { type AuthorizationSource, authorized } from './authorization.ts'
import type { HttpAnswer } from './http-answer.ts'
import type { Receiver, SendOptions } from './transport.ts'
import { maxInFlight, type ReadingOptions, waitingWhile } from './valve.ts'

export interface HttpOptions {
  url: URL
  /** Extra headers, sent with every request. */
  headers: Record<string, string>
  /**
   * The current headers of the client that the connection is for: sent with messages that have none. Their names are
   * not in `headers`.
   */
  passed?: () => SendOptions['headers']
  /** Gives the header `Authorization`, which is then in neither of the others. Absent: none is sent but theirs. */
  authorization?: AuthorizationSource
  /** Opens the sockets: the outbound client decides which addresses may be reached. */
  dispatcher: Dispatcher
  reading?: ReadingOptions
}

/** One HTTP request to be sent. */
export interface HttpRequest {
  readonly method: 'POST' | 'GET' | 'DELETE'
  /** Names and values in turn. */
  readonly headers: string[]
  readonly body: string | null
}

const postHeaders = ['content-type', 'application/json', 'accept', 'application/json, text/event-stream']
/**
 * An event id may have any characters (HTML, "Server-sent events"): it is sent as UTF-8, or left out when no header can
 * carry it.
 */
const getHeaders = (lastEventId: string | undefined): string[] => [
  'accept',
  'text/event-stream',
  ...(lastEventId === undefined ||
    /\p{Cc}/u.test(lastEventId)
    ? []
    : ['last-event-id', Buffer.from(lastEventId).toString('latin1')])
]

/** The state shared by the HTTP requests of one connection to an upstream: address, session, revision, credentials. */
export class HttpConnection {
  readonly options: HttpOptions
  readonly reading: ReadingOptions
  receiver: Receiver | undefined
  /** Called when a socket is open. */
  dialled: (() => void) | undefined
  /** The messages that wait for an answer, by the id of the request. */
  readonly #open = new Table<number | string, { abort: () => void }>()
  /** How many of these are notifications or answers. */
  #inFlight = 0
  readonly #timers = new Set<NodeJS.Timeout>()
  #url: URL
  #origin = ''
  #path = ''
  #session: string | undefined
  #version: string | undefined
  /** The default headers of a POST within the session, and without it. */
  #post: string[] = []
  readonly #stateless: string[]
  #isClosed = false
  #isExpired = false
  /** Called when nothing waits for an answer any more. */
  #onIdle: (() => void) | undefined

  constructor (options: HttpOptions) {
    const pace = waitingWhile(() => this.#inFlight >= maxInFlight, options.reading?.pace)
    this.options = options
    this.reading = { ...options.reading, pace }
    this.#url = options.url
    this.url = options.url
    this.#stateless = [...Object.entries(options.headers).flat(), ...postHeaders]
    this.#refreshHeaders()
  }

  /** Where requests go: what a redirect said last, which later requests follow directly. */
  get url (): URL { return this.#url }

  set url (url: URL) {
    this.#url = url
    this.#origin = url.origin
    this.#path = url.pathname + url.search
  }

  get session (): string | undefined { return this.#session }
  get version (): string | undefined { return this.#version }

  /** Takes the session that the upstream has begun. */
  begun (session: string): void {
    this.#session = session
    this.#refreshHeaders()
  }

  /** Takes the revision that was negotiated. */
  agreed (version: string): void {
    this.#version = version
    this.#refreshHeaders()
  }

  /** @param passed, @param protocol see `SendOptions.headers`, `SendOptions.protocol` */
  postHeaders (passed: SendOptions['headers'], protocol: SendOptions['protocol']): string[] {
    if (passed !== undefined || this.options.passed !== undefined) return this.#headers(passed, protocol, postHeaders)
    if (protocol === undefined) return this.#post
    const headers = [...this.#stateless]
    for (const name in protocol) {
      // The protocol's header replaces a configured one of the same name.
      if (Object.hasOwn(this.options.headers, name)) return this.#headers(passed, protocol, postHeaders)
      headers.push(name, protocol[name] ?? '')
    }
    return headers
  }

  /** @param lastEventId the event after which the stream is to continue */
  streamHeaders (passed: SendOptions['headers'], lastEventId: string | undefined): string[] {
    return this.#headers(passed, undefined, getHeaders(lastEventId))
  }

  bareHeaders (): string[] { return this.#headers(undefined, undefined, []) }

  /**
   * @param passed headers of the client that sends the message; undefined: those of the client that the connection is
   * for
   * @param protocol headers that MCP prescribes; undefined: the message belongs to the session
   */
  #headers (passed: SendOptions['headers'], protocol: SendOptions['protocol'], more: readonly string[]): string[] {
    const headers =
      Object.entries({ ...passed ?? this.options.passed?.(), ...this.options.headers, ...protocol }).flat()
    headers.push(...more)
    if (protocol !== undefined) return headers
    if (this.#session !== undefined) headers.push('mcp-session-id', this.#session)
    if (this.#version !== undefined) headers.push('mcp-protocol-version', this.#version)
    return headers
  }

  #refreshHeaders (): void {
    this.#post = this.#headers(undefined, undefined, postHeaders)
  }

  /** Sends an HTTP request. @param onSent told the value of `Authorization` that it is sent with */
  dispatch (
    { method, headers, body }: HttpRequest, answer: HttpAnswer, onSent?: (sent: string | undefined) => void
  ): void {
    const { authorization, dispatcher } = this.options
    authorized(authorization, answer, (sent) => {
      onSent?.(sent)
      dispatcher.dispatch(
        {
          origin: this.#origin,
          path: this.#path,
          method,
          headers: sent === undefined ? headers : [...headers, 'authorization', sent],
          body,
          headersTimeout: 0,
          bodyTimeout: 0
        },
        answer
      )
    })
  }

  /** @param key the id of a request; a text for other messages */
  opened (key: number | string, waiting: { abort: () => void }): void {
    this.#open.set(key, waiting)
    if (typeof key === 'string') this.#inFlight++
  }

  isOpen (key: number | string): boolean { return this.#open.has(key) }

  /** Forgets what has its answer. */
  done (key: number | string): void {
    if (this.#open.take(key) !== undefined && typeof key === 'string') this.#inFlight--
    if (this.#open.size === 0) this.#onIdle?.()
    if (this.#isExpired) this.expire()
  }

  /** Aborts what waits for an answer. */
  drop (key: number | string): void {
    const waiting = this.#open.take(key)
    if (waiting !== undefined && typeof key === 'string') this.#inFlight--
    waiting?.abort()
  }

  dropAll (): void { for (const key of this.#open.keys()) this.drop(key) }

  /** Aborts the requests that wait for an answer, and not the notifications. */
  dropRequests (): void { for (const key of this.#open.keys()) if (typeof key === 'number') this.drop(key) }

  /** Resolves when nothing waits for an answer any more. @param timeout in ms, after which it resolves as well */
  async idle (timeout: number): Promise<void> {
    if (this.#open.size === 0) return
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve
      setTimeout(resolve, timeout).unref()
    })
  }

  /** The upstream has ended the session. */
  markExpired (): void { this.#isExpired = true }

  /** The upstream has ended the session: the connection is closed once every open request has its own outcome. */
  expire (): void {
    this.#isExpired = true
    if (this.#open.size === 0) {
      this.receiver?.closed(new UpstreamError('expired', 'the upstream no longer knows our ' +
        'session', { isPublic: true }))
    }
  }

  /** Runs something later, unless the connection is closed before. @param ms until then */
  later (ms: number, run: () => void): void {
    const timer = setTimeout(() => { this.#timers.delete(timer); run() }, ms)
    this.#timers.add(timer)
    timer.unref()
  }

  get isClosed (): boolean { return this.#isClosed }

  /** Tells the receiver nothing more, and does nothing later. */
  close (): void {
    this.#isClosed = true
    this.receiver = undefined
    for (const timer of this.#timers) clearTimeout(timer)
  }
}
