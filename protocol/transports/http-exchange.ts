import { UpstreamError } from '../errors.ts'
import { carriesMessage, EventStreamParser, type StreamEvent } from '../event-stream.ts'
import { largeText } from '../text.ts'
import { bearerChallenge, type AuthorizationSource } from './authorization.ts'
import { HttpAnswer, networkFailureMessage, type AnswerHandlers } from './http-answer.ts'
import type { HttpConnection, HttpRequest } from './http-connection.ts'
import { isTransientStatus, reconnectDelays } from './reconnect.ts'
import { resolveRedirect } from './redirect.ts'
import {
  isRpcAnswer, isModernRefusal, isSessionLost, lostSessionError, parseEvent, refusalError, statelessError,
  unreadableError
} from './refusal.ts'
import { parseMessages, transportLimits, type SendOptions } from './transport.ts'

/** Max consecutive attempts to resume a stream. */
const maxTries = 5
/** Max time for which a stream stays open after its answer, in ms. */
const closeDelay = 1_000
/** Max time for the answer to the POST of a notification, in ms. */
const notificationTimeout = 10_000

/**
 * One sent message, with all HTTP requests that may return its answer: a POST, its repeats after a redirect or a
 * challenge, and GETs that resume its stream.
 */
export class HttpExchange implements AnswerHandlers {
  /** Called when the server has accepted the message, or will not. */
  onAccepted: (() => void) | undefined
  readonly #connection: HttpConnection
  /** The id of a request; undefined for a notification or an answer. */
  readonly #id: number | undefined
  readonly #key: number | string
  readonly #message: SendOptions
  /** Whether the message belongs to no session: it has headers that MCP prescribes. */
  readonly #isStateless: boolean
  /** Whether it has been answered or has failed. */
  #isAnswered = false
  /** Whether it was sent again after its credentials were refused. */
  #wasSentAgain = false
  /** The id of the last event on its stream, used to resume. */
  #lastEvent: string | undefined
  /** Delay before resuming the stream, in ms. */
  #wait: number = reconnectDelays.delay
  /** Consecutive attempts to resume the stream that returned no event. */
  #resumeAttempts = 0

  // State of the last HTTP request:
  #request: HttpRequest
  #answer: HttpAnswer
  #url: URL
  #redirects = 0
  #status = 0
  /** The media type of the answer. */
  #type = ''
  /** The events of the answer; undefined if it is no stream. */
  #events: EventStreamParser | undefined
  #location: string | undefined
  #wwwAuthenticate: string | undefined
  /** The value of `Authorization` that it was sent with. */
  #sent: string | undefined

  /** @param key identifies the message on the connection: the request's id, or a string for other messages */
  constructor (connection: HttpConnection, key: number | string, text: string, message: SendOptions) {
    this.#connection = connection
    this.#id = message.id
    this.#key = key
    this.#message = message
    this.#isStateless = message.protocol !== undefined
    this.#request = { method: 'POST', headers: connection.postHeaders(message.headers, message.protocol), body: text }
    this.#url = connection.url
    this.#answer = new HttpAnswer(this, connection.reading, message.owner)
  }

  send (): void {
    this.#connection.addPending(this.#key, this)
    if (this.#id === undefined) this.#connection.schedule(notificationTimeout, () => { this.abort(); this.#done() })
    this.#dispatch()
  }

  abort (): void { this.#answer.abort() }

  #dispatch (): void {
    this.#connection.dispatch(this.#request, this.#answer, (sent) => { this.#sent = sent })
  }

  /** Sends another HTTP request after the answer to the previous one has ended. */
  #sendAgain (request: HttpRequest): void {
    this.#request = request
    this.#url = this.#connection.url
    this.#status = 0
    this.#events = undefined
    this.#sent = undefined
    this.#answer = new HttpAnswer(this, this.#connection.reading, this.#message.owner)
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

  #onEvent (received: StreamEvent): void {
    const { id, retry, event, data } = received
    this.#resumeAttempts = 0
    if (id !== undefined) this.#lastEvent = id
    if (retry !== undefined) this.#wait = Math.max(retry, reconnectDelays.shortest)
    if (carriesMessage(received)) this.#take(data, true)
    // HTTP+SSE servers that do not look at the method answer a POST as they answer the GET.
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
    const isChallenge = bearerChallenge(status, this.#wwwAuthenticate, this.#sent, false) !== undefined
    if (authorization && text !== undefined && isChallenge && !this.#isSessionLost(text)) {
      this.#challenged(authorization, text).catch((error: unknown) => {
        this.#fail(error instanceof UpstreamError ? error : refusalError(status, text))
        this.#done()
      })
      return
    }
    if (text !== undefined && status < 300 && text !== '') this.#take(text)
    else if (text === undefined && !this.#isAnswered) this.#takeLast()
    this.#ended(text)
  }

  /** Whether the server does not know the session of this message. A challenge says what it wants. */
  #isSessionLost (text: string): boolean {
    const { session } = this.#connection
    return session !== undefined && this.#wwwAuthenticate === undefined && isSessionLost(this.#status, text)
  }

  /** Handles the last event of a stream, which some servers do not end with an empty line. */
  #takeLast (): void {
    const data = this.#events?.end() ?? ''
    // The beginning of an event is no JSON; resuming the stream returns it whole.
    if (data !== '') try { this.#take(data) } catch {}
  }

  /** Handles a text with one message or a batch. @param isEvent whether an answer may follow it @throws RpcError */
  #take (text: string, isEvent = false): void {
    const [connection, id] = [this.#connection, this.#id]
    const inSession = connection.session !== undefined && connection.version !== undefined && this.#status < 300
    for (const message of isEvent ? parseEvent(text, connection.reading.pace) : parseMessages(text)) {
      if (message.kind !== 'response') { connection.receiver?.message(message, id); continue }
      // Only the answer to this request is accepted on its stream; another may be meant for another client.
      if (id === undefined || (message.id !== id && message.id !== null)) {
        connection.reading.pace?.count('response')
        continue
      }
      const error = message.errorText !== undefined && inSession ? lostSessionError(message.errorText) : undefined
      if (error) this.#fail(error)
      else {
        this.#isAnswered = true
        connection.receiver?.message(message.id === null ? { ...message, id } : message, id)
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

  /** Handles the end of an answer. @param text its body, unless it was a stream */
  #ended (text: string | undefined): void {
    if (this.#isAnswered) { this.#done(); return }
    if (text === undefined) {
      // An upstream that wants to be polled ends its streams regularly, any number of times.
      this.#resumeAttempts = 0
      this.#resume(new UpstreamError('broken', 'the upstream ended its stream without an ' +
        'answer', { isPublic: true }), true)
    } else if (this.#status < 300 && text !== '') {
      this.#fail(new UpstreamError('broken', 'the upstream sent an answer, but not to this ' +
        'request', { isPublic: true }))
    } else if (this.#status >= 300 || this.#id !== undefined) this.#refused(text)
    this.#doneIfAnswered()
  }

  onError (error: Error, sent: boolean): void {
    const unreadable = unreadableError(error, this.#type)
    if (error instanceof UpstreamError) this.#fail(error)
    // Proxies send error pages of any type; the status is sufficient.
    else if (unreadable && this.#status >= 300) this.#refused('')
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
    // The request was accepted and may have run, whatever prevents the stream from being resumed.
    const isLost = this.#request.method === 'GET' && error.fault !== 'broken'
    const resumeError = (): UpstreamError => new UpstreamError(
      'broken', `its broken stream could not be resumed: ${error.message}`
    )
    this.#connection.receiver?.failed(this.#id, isLost ? resumeError() : error)
  }

  /** Schedules resuming a stream that ended before the answer. @param isPoll whether it ended regularly, for polling */
  #resume (error: UpstreamError, isPoll: boolean): void {
    const [connection, id] = [this.#connection, this.#id]
    if (this.#isAnswered || id === undefined || connection.isClosed) return
    if (this.#lastEvent === undefined || this.#isStateless || this.#resumeAttempts >= maxTries) {
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

  /** Handles an HTTP error of the upstream. */
  #refused (text: string): void {
    const { session, version, hasStandaloneStream } = this.#connection
    // Some servers, such as those with early Ruby SDKs, send the answer on the standalone stream.
    if (this.#status === 202 && hasStandaloneStream()) { this.#isAnswered = true; return }
    const [status, isStateless] = [this.#status, this.#isStateless]
    const isLarge = text.length > largeText
    const isLeft = !isStateless && version !== undefined && !isLarge && isModernRefusal(status, text)
    const answers = (id: number): boolean =>
      isRpcAnswer(status, text, id) || (isStateless && isModernRefusal(status, text))
    if (!isLarge && !isLeft && this.#id !== undefined && answers(this.#id)) { this.#take(text); return }
    const isGet = this.#request.method === 'GET'
    const error = isStateless
      ? statelessError(status, text)
      : refusalError(status, text, session !== undefined, version !== undefined)
    if (isGet && isTransientStatus(status)) { this.#resume(error, false); return }
    // An error that answers a POST concerns the request, even without an id; one that answers a GET concerns the
    // stream.
    if (!isGet && status >= 400 && !isStateless && !error.didNotRun && !isLarge) try { this.#take(text) } catch {}
    this.#fail(error)
  }

  /** Handles a challenge: sends the request again once other credentials are available. */
  async #challenged (authorization: AuthorizationSource, text: string): Promise<void> {
    const challenge = bearerChallenge(this.#status, this.#wwwAuthenticate, this.#sent, this.#wasSentAgain)
    const mayGoOn = challenge && await authorization.refused(challenge)
    if (mayGoOn === true && this.#connection.isPending(this.#key)) {
      this.#wasSentAgain = true
      this.#sendAgain(this.#request)
      return
    }
    if (mayGoOn !== true) this.#refused(text)
    this.#done()
  }

  #doneIfAnswered (): void { if (this.#isAnswered || this.#id === undefined) this.#done() }

  #done (): void {
    this.onAccepted?.()
    this.#connection.removePending(this.#key)
  }
}
