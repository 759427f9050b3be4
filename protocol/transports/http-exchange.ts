import { UpstreamError } from '../errors.ts'
import { carriesMessage, EventStreamParser, type ServerSentEvent } from '../event-stream.ts'
import { largeTextLength } from '../text.ts'
import { readBearerChallenge, type AuthorizationSource } from './authorization.ts'
import { HttpAnswerReader, networkFailureMessage, type AnswerHandlers } from './http-answer.ts'
import type { HttpConnection, HttpRequest } from './http-connection.ts'
import { isTransientStatus, reconnectDelays } from './reconnect.ts'
import { resolveRedirect } from './redirect.ts'
import {
  isCheck, isNotInitialized, isRpcAnswer, isModernErrorAnswer, isSessionLost, lostSessionErrorIn, parseEventMessages,
  httpStatusError, modernHttpStatusError, unreadableError
} from './refusal.ts'
import { parseMessages, transportLimits, type SendOptions } from './transport.ts'

/** Max consecutive failed attempts to resume a stream. */
const maxResumeAttempts = 5
/** Max time that a stream stays open after it has returned its answer, in ms. */
const closeDelay = 1_000
/** Max time for the answer to the POST of a notification, in ms. */
const notificationTimeout = 10_000

/**
 * One message to a server, with all HTTP requests that may return its answer: a POST, which is repeated after a
 * redirect or a challenge, and GETs that resume its stream.
 */
export class HttpExchange implements AnswerHandlers {
  /** Called when the server has accepted the message, or the message has failed. */
  onAccepted: (() => void) | undefined
  readonly #connection: HttpConnection
  /** The id of a request; undefined for a notification or an answer. */
  readonly #id: number | undefined
  readonly #key: number | string
  readonly #message: SendOptions
  /** Whether the message belongs to no session (`SendOptions.protocol`). */
  readonly #isStateless: boolean
  /** Whether the message has been answered, or has failed. */
  #isAnswered = false
  /** Whether the message was sent again after a challenge, and not accepted since. */
  #wasSentAgain = false
  /** The id of the last event on the stream, after which the stream is resumed. */
  #lastEvent: string | undefined
  /** Delay before resuming the stream, in ms. */
  #wait: number = reconnectDelays.delay
  /** The number of consecutive failed attempts to resume the stream. */
  #resumeAttempts = 0

  // The state of the current HTTP request:
  #request: HttpRequest
  #answer: HttpAnswerReader
  #url: URL
  #redirects = 0
  #status = 0
  /** The media type of the answer. */
  #type = ''
  /** The parser of the answer's events; undefined if the answer is not an event stream. */
  #events: EventStreamParser | undefined
  #location: string | undefined
  #wwwAuthenticate: string | undefined
  /** The value of the request's `Authorization` header. */
  #sentAuthorization: string | undefined

  /** @param key identifies the message on the connection: the request's id, or a string for other messages */
  constructor (connection: HttpConnection, key: number | string, text: string, message: SendOptions) {
    this.#connection = connection
    this.#id = message.id
    this.#key = key
    this.#message = message
    this.#isStateless = message.protocol !== undefined
    this.#request = { method: 'POST', headers: connection.postHeaders(message.headers, message.protocol), body: text }
    this.#url = connection.url
    this.#answer = new HttpAnswerReader(this, connection.reading, message.owner)
  }

  send (): void {
    this.#connection.addPending(this.#key, this)
    if (this.#id === undefined) this.#connection.schedule(notificationTimeout, () => { this.abort(); this.#done() })
    this.#dispatch()
  }

  abort (): void { this.#answer.abort() }

  #dispatch (): void {
    this.#connection.dispatch(this.#request, this.#answer, (sent) => { this.#sentAuthorization = sent })
  }

  /** Sends another HTTP request after the answer to the previous one has ended. */
  #sendAgain (request: HttpRequest): void {
    this.#request = request
    this.#url = this.#connection.url
    this.#status = 0
    this.#events = undefined
    this.#sentAuthorization = undefined
    this.#answer = new HttpAnswerReader(this, this.#connection.reading, this.#message.owner)
    this.#dispatch()
  }

  onStart (): void { this.#connection.onDialled?.() }

  onHead (
    status: number,
    contentType: string,
    session: string | undefined,
    location: string | undefined,
    wwwAuthenticate: string | undefined
  ): EventStreamParser | 'collect' | 'discard' {
    const connection = this.#connection
    this.#status = status
    this.#type = contentType.split(';', 1)[0]?.trim() ?? ''
    this.#location = location
    this.#wwwAuthenticate = wwwAuthenticate
    if (status < 300) {
      this.#wasSentAgain = false
      this.onAccepted?.()
    }
    const mayBegin = connection.version === undefined && !this.#isStateless
    if (session !== undefined && mayBegin && session !== connection.session) connection.startSession(session)
    if (status < 300 && contentType.startsWith('text/event-stream')) {
      this.#events = new EventStreamParser((event) => { this.#onEvent(event) }, transportLimits.message)
      return this.#events
    }
    return this.#id === undefined && status < 300 ? 'discard' : 'collect'
  }

  #onEvent (received: ServerSentEvent): void {
    const { id, retry, event, data } = received
    this.#resumeAttempts = 0
    if (id !== undefined) this.#lastEvent = id
    if (retry !== undefined) this.#wait = Math.max(retry, reconnectDelays.shortest)
    if (carriesMessage(received)) this.#take(data, true)
    // Some HTTP+SSE servers answer a POST at this address like a GET.
    else if (event === 'endpoint' && this.#connection.version === undefined) {
      this.#fail(new UpstreamError('refused', 'the upstream uses HTTP+SSE at this address: set "type" to "sse"'))
      this.#closeStream()
    }
  }

  onEnd (text: string | undefined): void {
    const [status, { authorization }] = [this.#status, this.#connection.options]
    const next = resolveRedirect(this.#url, this.#request.method, status, this.#location, this.#redirects)
    if (next) {
      this.#connection.url = next
      this.#redirects++
      this.#sendAgain(this.#request)
      return
    }
    const isChallenge = readBearerChallenge(status, this.#wwwAuthenticate, this.#sentAuthorization, false) !== undefined
    if (authorization && text !== undefined && isChallenge && !this.#isSessionLost(text)) {
      this.#challenged(authorization, text).catch((error: unknown) => {
        this.#fail(error instanceof UpstreamError ? error : httpStatusError(status, text))
        this.#done()
      })
      return
    }
    if (text !== undefined && status < 300 && text !== '') this.#take(text)
    else if (text === undefined && !this.#isAnswered) this.#takeLast()
    this.#onAnswerEnd(text)
  }

  /** Whether the server does not know the session. An answer with `WWW-Authenticate` is about credentials instead. */
  #isSessionLost (text: string): boolean {
    const { session } = this.#connection
    return session !== undefined && this.#wwwAuthenticate === undefined && isSessionLost(this.#status, text)
  }

  /** Handles the last event of a stream, which some servers do not end with an empty line. */
  #takeLast (): void {
    const data = this.#events?.end() ?? ''
    // If only a part of the event has arrived, it is not JSON; the server sends it again when the stream is resumed.
    if (data !== '') try { this.#take(data) } catch {}
  }

  /** Handles a text with a message or a batch. @param isEvent whether it is the data of an event @throws RpcError */
  #take (text: string, isEvent = false): void {
    const [connection, id] = [this.#connection, this.#id]
    const inSession = connection.session !== undefined && connection.version !== undefined && this.#status < 300
    for (const message of isEvent ? parseEventMessages(text, connection.reading.pace) : parseMessages(text)) {
      if (message.kind !== 'response') { connection.receiver?.message(message, id); continue }
      // Only an answer to this exchange's request (or with id null) is accepted: any other may be for another client.
      if (id === undefined || (message.id !== id && message.id !== null)) {
        connection.reading.pace?.count('response')
        continue
      }
      const { errorText } = message
      const error = errorText !== undefined && inSession ? lostSessionErrorIn(errorText) : undefined
      if (error && (isCheck(this.#request.body) || isNotInitialized(error))) this.#fail(error)
      else {
        this.#isAnswered = true
        connection.deliver(message.id === null ? { ...message, id } : message, id, error)
      }
      if (this.#events) {
        connection.schedule(this.#request.method === 'GET' ? 0 : closeDelay, () => { this.#closeStream() })
      }
    }
  }

  /** Closes a stream that has returned its answer, after reading what arrived while the event loop was blocked. */
  #closeStream (): void {
    setImmediate(() => { this.abort(); this.#done() })
  }

  /** Handles the end of an HTTP answer. @param text its body; undefined if it was a stream */
  #onAnswerEnd (text: string | undefined): void {
    if (this.#isAnswered) { this.#done(); return }
    if (text === undefined) {
      // An upstream that wants to be polled ends its streams regularly, any number of times.
      this.#resumeAttempts = 0
      this.#resume(new UpstreamError('broken', 'the upstream ended its stream without an ' +
        'answer', { isPublic: true }), true)
    } else if (this.#status < 300 && text !== '') {
      this.#fail(new UpstreamError('broken', 'the upstream sent an answer, but not to this ' +
        'request', { isPublic: true }))
    } else if (this.#status >= 300 || this.#id !== undefined) this.#onHttpError(text)
    this.#doneIfAnswered()
  }

  onError (error: Error, sent: boolean): void {
    const unreadable = unreadableError(error, this.#type)
    if (error instanceof UpstreamError) this.#fail(error)
    // An error page of a proxy may have any type and encoding; only its status matters.
    else if (unreadable && this.#status >= 300) this.#onHttpError('')
    else if (unreadable) this.#fail(unreadable)
    else {
      const failure = networkFailureMessage(error, this.#connection.options.url)
      if (this.#lastEvent !== undefined && !this.#isStateless) this.#resume(new UpstreamError('broken', failure), false)
      else this.#fail(new UpstreamError(sent ? 'broken' : 'unreachable', failure))
    }
    this.#doneIfAnswered()
  }

  #fail (error: UpstreamError): void {
    if (this.#isAnswered) return
    this.#isAnswered = true
    if (error.fault === 'expired' && !this.#isStateless) this.#connection.markExpired()
    if (this.#id === undefined) return
    // If the stream cannot be resumed, the request has been accepted, and may have run.
    const isResume = this.#request.method === 'GET' && error.fault !== 'broken'
    const failure = `its broken stream could not be resumed: ${error.message}`
    this.#connection.receiver?.failed(this.#id, isResume ? new UpstreamError('broken', failure) : error)
  }

  /** After a delay, resumes a stream that ended early; or fails the request. @param isPoll if the server is polled */
  #resume (error: UpstreamError, isPoll: boolean): void {
    const [connection, id] = [this.#connection, this.#id]
    if (this.#isAnswered || id === undefined || connection.isClosed) return
    if (this.#lastEvent === undefined || this.#isStateless || this.#resumeAttempts >= maxResumeAttempts) {
      this.#fail(error); return
    }
    if (isPoll) connection.receiver?.paused(id, this.#wait)
    connection.schedule(this.#wait, () => {
      this.#resumeAttempts++
      if (!connection.isPending(id)) return
      this.#redirects = 0
      this.#sendAgain(
        { method: 'GET', headers: connection.streamHeaders(this.#message.headers, this.#lastEvent), body: null }
      )
    })
  }

  #onHttpError (text: string): void {
    const { session, version, hasStandaloneStream } = this.#connection
    // Some servers, for example with early Ruby SDKs, send all answers on the standalone stream.
    if (this.#status === 202 && hasStandaloneStream()) { this.#isAnswered = true; return }
    const [status, isStateless] = [this.#status, this.#isStateless]
    const isLarge = text.length > largeTextLength
    // If true, the server now supports only the modern era, and a new connection must be opened.
    const hasLeftEra = !isStateless && version !== undefined && !isLarge && isModernErrorAnswer(status, text)
    const answers = (id: number): boolean =>
      isRpcAnswer(status, text, id, isStateless) || (isStateless && isModernErrorAnswer(status, text))
    if (!isLarge && !hasLeftEra && this.#id !== undefined && answers(this.#id)) { this.#take(text); return }
    const isGet = this.#request.method === 'GET'
    const error = isStateless
      ? modernHttpStatusError(status, text)
      : httpStatusError(status, text, session !== undefined, version !== undefined)
    if (isGet && isTransientStatus(status)) { this.#resume(error, false); return }
    // A JSON-RPC error in answer to the POST concerns the request, even without an id; in answer to a GET, the stream.
    if (!isGet && status >= 400 && !isStateless && !error.didNotRun && !isLarge) try { this.#take(text) } catch {}
    this.#fail(error)
  }

  /** Handles a challenge: sends the message again if other credentials are available. */
  async #challenged (authorization: AuthorizationSource, text: string): Promise<void> {
    const sent = this.#sentAuthorization
    const challenge = readBearerChallenge(this.#status, this.#wwwAuthenticate, sent, this.#wasSentAgain)
    const sendsAgain = challenge && await authorization.refused(challenge)
    if (sendsAgain === true && this.#connection.isPending(this.#key)) {
      this.#wasSentAgain = true
      this.#sendAgain(this.#request)
      return
    }
    if (sendsAgain !== true) this.#onHttpError(text)
    this.#done()
  }

  #doneIfAnswered (): void { if (this.#isAnswered || this.#id === undefined) this.#done() }

  #done (): void {
    this.onAccepted?.()
    this.#connection.removePending(this.#key)
  }
}
