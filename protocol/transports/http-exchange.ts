import { code, RpcError, UpstreamError } from '../errors.ts'
import { EventStreamParser, type StreamEvent } from '../event-stream.ts'
import { largeText } from '../text.ts'
import { bearerChallenge, type AuthorizationSource } from './authorization.ts'
import { HttpAnswer, networkFailure, type AnswerHandlers } from './http-answer.ts'
import type { HttpConnection, HttpRequest } from './http-connection.ts'
import { mayPass, reconnect, follow } from './redirect.ts'
import { isAnswer, isModernRefusal, refusal, statelessRefusal } from './refusal.ts'
import { messagesIn, transportLimits, type SendOptions } from './transport.ts'

/** A media type of something else than messages, as pages of proxies have it. */
const otherType = /^(?!text\/event-stream$)(?!.*json)[\w.+-]{1,60}\/[\w.+-]{1,60}$/
/** Max attempts in a row to resume a stream. */
const maxTries = 5
/** Max time that a stream stays open after the answer for which it was opened, in ms. */
const afterAnswer = 1_000
/** Max time for the answer to the POST of a notification, in ms. */
const notificationTimeout = 10_000

/**
 * One message that was sent, through all the HTTP requests by which its answer may come: a POST, the same once more
 * where a redirect or other credentials ask for it, and GETs that resume its stream.
 */
export class HttpExchange implements AnswerHandlers {
  readonly #connection: HttpConnection
  /** The id of a request; undefined for a notification or an answer. */
  readonly #id: number | undefined
  readonly #key: number | string
  readonly #message: SendOptions
  /** Whether it belongs to no session: it has headers that MCP prescribes. */
  readonly #isStateless: boolean
  /** It has its answer, or has failed. */
  #isAnswered = false
  /** It was refused for want of other credentials, and is sent again. */
  #again = false
  /** The id of the last event on its stream, for resuming it. */
  #lastEvent: string | undefined
  /** Delay before resuming the stream, in ms. */
  #wait: number = reconnect.delay
  /** Attempts in a row to resume the stream that brought no event. */
  #tries = 0

  // The state of the HTTP request that was sent last.
  #request: HttpRequest
  #answer: HttpAnswer
  #url: URL
  /** Redirects that it has followed. */
  #hops = 0
  #status = 0
  /** The media type of the answer. */
  #type = ''
  /** The answer is an event stream. */
  #streams = false
  #location: string | undefined
  #wwwAuthenticate: string | undefined
  /** The value of `Authorization` that it was sent with. */
  #sent: string | undefined

  /** @param key identifies it among those of the connection: its id, or something else for a notification */
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
    this.#connection.opened(this.#key, this)
    if (this.#id === undefined) this.#connection.later(notificationTimeout, () => { this.abort(); this.#done() })
    this.#dispatch()
  }

  abort (): void { this.#answer.abort() }

  #dispatch (): void {
    this.#connection.dispatch(this.#request, this.#answer, (sent) => { this.#sent = sent })
  }

  /** Sends another HTTP request, once the answer of the one before is over. */
  #sendAgain (request: HttpRequest): void {
    this.#request = request
    this.#url = this.#connection.url
    this.#status = 0
    this.#streams = false
    this.#sent = undefined
    this.#answer = new HttpAnswer(this, this.#connection.reading, this.#message.owner)
    this.#dispatch()
  }

  onStart (): void { this.#connection.dialled?.() }

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
    if (status < 300) this.#again = false
    const mayBegin = connection.version === undefined && !this.#isStateless
    if (session !== undefined && mayBegin && session !== connection.session) connection.begun(session)
    if (status === 200 && contentType.startsWith('text/event-stream')) {
      this.#streams = true
      return new EventStreamParser((event) => { this.#onEvent(event) }, transportLimits.message)
    }
    return this.#id === undefined && status < 300 ? 'discard' : 'collect'
  }

  #onEvent ({ id, retry, event, data }: StreamEvent): void {
    this.#tries = 0
    if (id !== undefined) this.#lastEvent = id
    if (retry !== undefined) this.#wait = Math.max(retry, reconnect.shortest)
    if (event === 'message' && data !== '') this.#take(data)
  }

  onEnd (text: string | undefined): void {
    const [status, { authorization }] = [this.#status, this.#connection.options]
    const next = follow(this.#url, this.#request.method, status, this.#location, this.#hops)
    if (next) {
      this.#connection.url = next
      this.#hops++
      this.#sendAgain(this.#request)
      return
    }
    if (authorization && text !== undefined && bearerChallenge(status, this.#wwwAuthenticate, this.#sent, false)) {
      this.#challenged(authorization, text).catch((error: unknown) => {
        this.#fail(error instanceof UpstreamError ? error : refusal(status, text))
        this.#done()
      })
      return
    }
    if (text !== undefined && status === 200 && text !== '') this.#take(text)
    this.#ended(text)
  }

  onError (error: Error, sent: boolean): void { this.#failed(error, sent) }

  /** Takes the text of one message, or of a batch. @throws RpcError */
  #take (text: string): void {
    const [connection, id] = [this.#connection, this.#id]
    for (const message of messagesIn(text)) {
      if (message.kind !== 'response') { connection.receiver?.message(message, id); continue }
      // Only the answer to this request is accepted on its stream: another one could be meant for another client.
      if (id === undefined || (message.id !== id && message.id !== null)) {
        connection.reading.pace?.count('response')
        continue
      }
      this.#isAnswered = true
      connection.receiver?.message(message.id === null ? { ...message, id } : message, id)
      if (this.#streams) {
        connection.later(this.#request.method === 'GET' ? 0 : afterAnswer, () => { this.#closeStream() })
      }
    }
  }

  /**
   * Closes a stream that has brought its answer, once what has arrived meanwhile is read: the event loop may have been
   * held.
   */
  #closeStream (): void {
    setImmediate(() => { this.abort(); this.#done() })
  }

  /** The whole answer was read. @param text its body, unless it was a stream */
  #ended (text: string | undefined): void {
    if (this.#isAnswered) { this.#done(); return }
    if (text === undefined) {
      // An upstream that wants to be polled ends a stream in good order, as often as it likes.
      this.#tries = 0
      this.#resume(new UpstreamError('broken', 'the upstream ended its stream without an ' +
        'answer', { isPublic: true }), true)
    } else if (this.#status === 200 && text !== '') {
      this.#fail(new UpstreamError('broken', 'the upstream answered, but not this request', { isPublic: true }))
    } else if (this.#status >= 300 || this.#id !== undefined) this.#refused(text)
    this.#doneIfAnswered()
  }

  #failed (error: Error, sent: boolean): void {
    const isUnreadable = error instanceof RangeError || error instanceof SyntaxError || error instanceof RpcError
    if (error instanceof UpstreamError) this.#fail(error)
    // Pages of proxies, of whatever kind: their status says what happened.
    else if (isUnreadable && this.#status >= 300) this.#refused('')
    else if (error instanceof RangeError) {
      this.#fail(new UpstreamError('broken', 'the upstream\'s answer is too large: ' +
        `${error.message}`, { isPublic: true }))
    } else if (error instanceof SyntaxError || error instanceof RpcError) {
      const isPage = error instanceof RpcError && error.code === code.parse && otherType.test(this.#type)
      const message = isPage
        ? `the upstream answered with ${this.#type} in place of JSON`
        : `the upstream's answer cannot be read: ${error.message}`
      this.#fail(new UpstreamError('broken', message, { isPublic: true }))
    } else {
      const failure = networkFailure(error, this.#connection.options.url)
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
    // The request was accepted and may have run, whatever keeps its stream from being resumed.
    const isLost = this.#request.method === 'GET' && error.fault !== 'broken'
    const lost = (): UpstreamError => new UpstreamError('broken', 'its broken stream could not be resumed: ' +
      `${error.message}`)
    this.#connection.receiver?.failed(this.#id, isLost ? lost() : error)
  }

  /**
   * The stream ended before the answer: resumes it later.
   * @param isPoll the upstream ended it in good order, to be polled
   */
  #resume (error: UpstreamError, isPoll: boolean): void {
    const [connection, id] = [this.#connection, this.#id]
    if (this.#isAnswered || id === undefined || connection.isClosed) return
    if (this.#lastEvent === undefined || this.#isStateless || this.#tries >= maxTries) { this.#fail(error); return }
    if (isPoll) connection.receiver?.paused(id, this.#wait)
    connection.later(this.#wait, () => {
      this.#tries++
      if (!connection.isOpen(id)) return
      this.#hops = 0
      this.#sendAgain(
        { method: 'GET', headers: connection.streamHeaders(this.#message.headers, this.#lastEvent), body: null }
      )
    })
  }

  /** The upstream has answered with an HTTP error. */
  #refused (text: string): void {
    const { session, version } = this.#connection
    const [status, isStateless] = [this.#status, this.#isStateless]
    const isLarge = text.length > largeText
    const isLeft = !isStateless && version !== undefined && !isLarge && isModernRefusal(status, text)
    const answers = (id: number): boolean =>
      isAnswer(status, text, id) || (isStateless && isModernRefusal(status, text))
    if (!isLarge && !isLeft && this.#id !== undefined && answers(this.#id)) { this.#take(text); return }
    const error = isStateless
      ? statelessRefusal(status, text)
      : refusal(status, text, session !== undefined, version !== undefined)
    const isGet = this.#request.method === 'GET'
    if (isGet && mayPass(status)) { this.#resume(error, false); return }
    // The error in a POST's answer is about the request, even without an id; that in a GET's answer is about the
    // stream.
    if (!isGet && status >= 400 && !isStateless && !error.didNotRun && !isLarge) try { this.#take(text) } catch {}
    this.#fail(error)
  }

  /** The upstream wants other credentials: sends the request again once they are there. */
  async #challenged (authorization: AuthorizationSource, text: string): Promise<void> {
    const challenge = bearerChallenge(this.#status, this.#wwwAuthenticate, this.#sent, this.#again)
    const mayGoOn = challenge && await authorization.refused(challenge)
    if (mayGoOn === true && this.#connection.isOpen(this.#key)) {
      this.#again = true
      this.#sendAgain(this.#request)
      return
    }
    if (mayGoOn !== true) this.#refused(text)
    this.#done()
  }

  #doneIfAnswered (): void {
    if (this.#isAnswered || this.#id === undefined) this.#done()
  }

  #done (): void { this.#connection.done(this.#key) }
}
