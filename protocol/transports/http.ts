import type { Dispatcher } from 'undici'
import { RpcError, UpstreamError } from '../errors.ts'
import { EventStreamParser, type StreamEvent } from '../event-stream.ts'
import { inSteps, largeText } from '../large-message.ts'
import type { Message } from '../message.ts'
import { Table } from '../table.ts'
import { challengeOf, type Authorization } from './authorization.ts'
import { authorized } from './authorized.ts'
import { Answer, networkFailure, type ReadingOptions } from './http-answer.ts'
import { MessageReader } from './message-reader.ts'
import { NewsStream } from './news-stream.ts'
import { mayPass, reconnect } from './reconnect.ts'
import { follow } from './redirect.ts'
import { isAnswer, isModernRefusal, refusal, statelessRefusal } from './refusal.ts'
import { messagesIn, transportLimits, type Receiver, type SendOptions, type Transport } from './transport.ts'

/** `owner`: who causes messages that are caused by no client. */
export interface HttpOptions extends ReadingOptions {
  url: URL
  /** Extra headers, sent with every request. */
  headers: Record<string, string>
  /**
   * The current headers of the client that the connection is for: sent with messages that bring no headers of their own. Their names are
   * not in `headers`.
   */
  passed?: () => SendOptions['headers']
  /** Gives the header `Authorization`, which is then in neither of the others. Absent: none is sent but theirs. */
  authorization?: Authorization
  /** Opens the sockets: the outbound client decides which addresses may be reached. */
  dispatcher: Dispatcher
}

/** One message that was sent, through all the streams on which its answer may come. */
interface Outgoing {
  /** The id of a request; undefined for a notification or an answer. */
  id: number | undefined
  /** Headers of the client that sent it. */
  passed: SendOptions['headers']
  /** Who causes its answer. */
  owner: string | undefined
  /** Headers that MCP prescribes for it: it belongs to no session. */
  protocol: SendOptions['protocol']
  /** The id of the last event on its stream, for resuming it. */
  last?: string
  /** Delay before resuming the stream, in ms. */
  wait: number
  /** Attempts in a row to resume the stream that brought no event. */
  tries: number
  /** It was refused for want of other credentials, and is sent again. */
  again?: boolean
}

/** Max attempts in a row to resume a stream. */
const maxTries = 5
/** Max time that a stream stays open after the answer for which it was opened, in ms. */
const afterAnswer = 1_000
/** Max time for the answer to the POST of a notification, in ms. */
const notificationTimeout = 10_000
/** Max time for each of the two steps of closing, in ms. */
const closeTimeout = 2_000
const postHeaders = ['content-type', 'application/json', 'accept', 'application/json, text/event-stream']
/** An event id may have any characters (HTML, "Server-sent events"): it is sent as UTF-8, or left out when no header can carry it. */
const getHeaders = (lastEventId: string | undefined): string[] => [
  'accept',
  'text/event-stream',
  ...(lastEventId === undefined || /\p{Cc}/u.test(lastEventId) ? [] : ['last-event-id', Buffer.from(lastEventId).toString('latin1')])
]

/**
 * The client side of streamable HTTP (specification: Transports, "Streamable HTTP"): a POST for each message, whose answer is JSON or an
 * event stream. In revisions to 2025-11-25 the stream is resumed by `Last-Event-ID`, and a GET stream has the messages that belong to no
 * request; since 2026-07-28, each message has the headers of `SendOptions.protocol` instead, and stands for itself.
 */
export class HttpTransport implements Transport {
  readonly hasStreams = true
  readonly #options: HttpOptions
  readonly #open = new Table<number | string, Answer>()
  readonly #timers = new Set<NodeJS.Timeout>()
  readonly #news: NewsStream
  /** The value of `Authorization` that the stream was opened with. */
  #newsSent: string | undefined
  #receiver: Receiver | undefined
  #session: string | undefined
  #version: string | undefined
  #post: string[] = []
  #closed = false
  #notifications = 0
  #expired = false
  /** The last message belonged to no session: nothing is left to end then. */
  #isStateless = false
  /** Called when a connection is open. */
  #dialled: (() => void) | undefined
  /** Called when no request is open any more. */
  #onIdle: (() => void) | undefined
  #url: URL

  constructor (options: HttpOptions) {
    this.#options = options
    this.#url = options.url
    this.#news = new NewsStream({
      request: (answer, lastEventId) => {
        const headers = this.#headers(undefined, undefined, ...getHeaders(lastEventId))
        this.#dispatch('GET', headers, null, answer, (sent) => { this.#newsSent = sent })
      },
      message: (message) => { this.#receiver?.message(message, undefined) },
      refused: (status, text) => {
        if (refusal(status, text, this.#session !== undefined).fault === 'expired') this.#expire()
        // The stream is opened again with the credentials that come of it.
        const challenge = challengeOf(status, undefined, this.#newsSent, false)
        if (challenge) options.authorization?.refused(challenge).catch(() => {})
      },
      lost: (error) => { this.#receiver?.closed(new UpstreamError('broken', networkFailure(error, this.#options.url))) }
    }, options)
    this.#refreshHeaders()
  }

  async start (receiver: Receiver, dialled?: () => void): Promise<void> {
    this.#receiver = receiver
    // The connection is opened for the first request.
    this.#dialled = dialled
  }

  send (text: string, options?: SendOptions): void {
    if (this.#closed) return
    const { id, headers, owner, protocol } = options ?? {}
    const own = headers === undefined && protocol === undefined && this.#options.passed === undefined
    this.#isStateless = protocol !== undefined
    this.#request('POST', own ? this.#post : this.#headers(headers, protocol, ...postHeaders), text, {
      id,
      passed: headers,
      owner,
      protocol,
      wait: reconnect.delay,
      tries: 0
    })
  }

  drop (id: number): void {
    this.#open.take(id)?.abort()
  }

  async agreed (version: string): Promise<void> {
    this.#version = version
    this.#refreshHeaders()
    await this.#news.open()
  }

  async close (): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#receiver = undefined
    this.#news.close()
    for (const timer of this.#timers) clearTimeout(timer)
    // Notifications that were just sent, such as cancellations, are still delivered. An `initialize` is waited for, to end its session.
    if (this.#version !== undefined || this.#isStateless) {
      for (const key of this.#open.keys()) if (typeof key === 'number') this.#open.take(key)?.abort()
    }
    if (this.#open.size > 0) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve
        setTimeout(resolve, closeTimeout).unref()
      })
    }
    for (const key of this.#open.keys()) this.#open.take(key)?.abort()
    if (this.#session === undefined) return
    await new Promise<void>((resolve) => {
      const answer = new Answer({ onHead: () => 'discard', onEnd: () => { resolve() }, onError: () => { resolve() } })
      setTimeout(() => { answer.abort(); resolve() }, closeTimeout).unref()
      this.#dispatch('DELETE', this.#headers(undefined, undefined), null, answer)
    })
  }

  /**
   * @param passed headers of the client that sends the message; undefined: those of the client that the connection is for
   * @param protocol headers that MCP prescribes; undefined: the message belongs to the session
   */
  #headers (passed: SendOptions['headers'], protocol: SendOptions['protocol'], ...more: string[]): string[] {
    const headers = Object.entries({ ...passed ?? this.#options.passed?.(), ...this.#options.headers, ...protocol }).flat()
    headers.push(...more)
    if (protocol !== undefined) return headers
    if (this.#session !== undefined) headers.push('mcp-session-id', this.#session)
    if (this.#version !== undefined) headers.push('mcp-protocol-version', this.#version)
    return headers
  }

  #refreshHeaders (): void {
    this.#post = this.#headers(undefined, undefined, ...postHeaders)
  }

  /** @param onSent told the value of `Authorization` that it is sent with */
  #dispatch (
    method: 'POST' | 'GET' | 'DELETE',
    headers: string[],
    body: string | null,
    answer: Answer,
    onSent?: (sent: string | undefined) => void
  ): void {
    const { authorization, dispatcher } = this.#options
    authorized(authorization, answer, (sent) => {
      onSent?.(sent)
      dispatcher.dispatch(
        {
          origin: this.#url.origin,
          path: this.#url.pathname + this.#url.search,
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

  /** Sends one POST, or one GET that resumes its stream, and handles its answer. */
  #request (method: 'POST' | 'GET', headers: string[], body: string | null, outgoing: Outgoing, hops = 0): void {
    const url = this.#url
    const { id } = outgoing
    const key = id ?? `notification ${++this.#notifications}`
    let answered = false
    let status = 0
    let streams = false
    let location: string | undefined
    let wwwAuthenticate: string | undefined
    let sent: string | undefined
    const fail = (error: UpstreamError): void => {
      if (answered) return
      answered = true
      this.#expired ||= error.fault === 'expired' && outgoing.protocol === undefined
      if (id === undefined) return
      // Whatever the reason why a stream cannot be resumed: the request was accepted, and may have run.
      const lost = method === 'GET' && error.fault !== 'broken'
      this.#receiver?.failed(id, lost ? new UpstreamError('broken', `its broken stream could not be resumed: ${error.message}`) : error)
    }
    let reader: MessageReader | undefined
    /** Runs something once what has been received before is read. */
    const inOrder = (run: () => void): void => { if (reader) reader.then(run); else run() }
    const take = (text: string): void => {
      if (text.length > largeText) {
        reader ??= new MessageReader({
          work: this.#options.work ?? inSteps,
          owner: outgoing.owner ?? this.#options.owner ?? '',
          // That of a JSON answer is counted until it is read.
          meter: streams ? this.#options.meter : undefined,
          onMessages: receive,
          onError: (error) => {
            answer.abort()
            failed(error instanceof Error ? error : new Error(String(error)), true)
          },
          pause: () => { answer.pause() },
          resume: () => { answer.resume() }
        })
      }
      if (reader) reader.push(text)
      else receive(messagesIn(text))
    }
    const receive = (messages: readonly Message[]): void => {
      for (const message of messages) {
        // Only the answer to this request is accepted on its stream: another one could be meant for another client.
        if (message.kind === 'response' && (id === undefined || (message.id !== id && message.id !== null))) continue
        if (message.kind === 'response' && id !== undefined) {
          answered = true
          this.#receiver?.message({ ...message, id }, id)
          if (streams) this.#later(method === 'GET' ? 0 : afterAnswer, () => { answer.abort(); this.#done(key, answer) })
        } else this.#receiver?.message(message, id)
      }
    }
    const onEvent = (event: StreamEvent): void => {
      outgoing.tries = 0
      if (event.id !== undefined) outgoing.last = event.id
      if (event.retry !== undefined) outgoing.wait = Math.max(event.retry, reconnect.shortest)
      if (event.event === 'message' && event.data !== '') take(event.data)
    }
    /** The stream ended before the answer: resumes it later. @param isPoll the upstream ended it in good order, to be polled */
    const resume = (error: UpstreamError, isPoll: boolean): void => {
      if (answered || id === undefined || this.#closed) return
      if (outgoing.last === undefined || outgoing.protocol !== undefined || outgoing.tries >= maxTries) { fail(error); return }
      if (isPoll) this.#receiver?.paused(id, outgoing.wait)
      this.#later(outgoing.wait, () => {
        outgoing.tries++
        if (this.#open.get(id) !== answer) return
        this.#request('GET', this.#headers(outgoing.passed, undefined, ...getHeaders(outgoing.last)), null, outgoing)
      })
    }
    const refused = (text: string): void => {
      const isLarge = text.length > largeText
      const isLeft = outgoing.protocol === undefined && this.#version !== undefined && !isLarge && isModernRefusal(status, text)
      const isStateless = outgoing.protocol !== undefined
      const answers = (id: number): boolean => isAnswer(status, text, id) || (isStateless && isModernRefusal(status, text))
      if (!isLarge && !isLeft && id !== undefined && answers(id)) { take(text); return }
      const error = outgoing.protocol === undefined
        ? refusal(status, text, this.#session !== undefined, this.#version !== undefined)
        : statelessRefusal(status, text)
      if (method === 'GET' && mayPass(status)) { resume(error, false); return }
      // The error in a POST's answer is about the request, even without an id; that in a GET's answer is about the stream.
      if (method === 'POST' && status >= 400 && outgoing.protocol === undefined && !error.didNotRun && !isLarge) try { take(text) } catch {}
      fail(error)
    }
    /** The whole answer was read. @param text its body, unless it was a stream */
    const ended = (text: string | undefined): void => {
      if (text === undefined) {
        // An upstream that wants to be polled ends a stream in good order, as often as it likes.
        outgoing.tries = 0
        resume(new UpstreamError('broken', 'the upstream ended its stream without an answer', { isPublic: true }), true)
      } else if (status === 200 && text !== '') {
        if (!answered) fail(new UpstreamError('broken', 'the upstream answered, but not this request', { isPublic: true }))
      } else if (status >= 300 || id !== undefined) refused(text)
      if (answered || id === undefined) this.#done(key, answer)
    }
    const failed = (error: Error, sent: boolean): void => {
      if (error instanceof UpstreamError) fail(error)
      else if (error instanceof RangeError) {
        fail(new UpstreamError('broken', `the upstream's answer is too large: ${error.message}`, { isPublic: true }))
      } else if (error instanceof SyntaxError || error instanceof RpcError) {
        fail(new UpstreamError('broken', `the upstream's answer cannot be read: ${error.message}`, { isPublic: true }))
      } else if (outgoing.last !== undefined && outgoing.protocol === undefined) {
        resume(new UpstreamError('broken', networkFailure(error, this.#options.url)), false)
      } else fail(new UpstreamError(sent ? 'broken' : 'unreachable', networkFailure(error, this.#options.url)))
      if (answered || id === undefined) this.#done(key, answer)
    }
    /** The upstream wants other credentials: sends it again once they are there. */
    const challenged = async (authorization: Authorization, text: string): Promise<void> => {
      const challenge = challengeOf(status, wwwAuthenticate, sent, outgoing.again === true)
      const again = challenge && await authorization.refused(challenge)
      if (again !== true) {
        refused(text)
      } else if (this.#open.get(key) === answer) {
        outgoing.again = true
        this.#request(method, headers, body, outgoing, hops)
        if (id === undefined) this.#done(key, answer)
        return
      }
      this.#done(key, answer)
    }
    const answer = new Answer({
      onHead: (code, type, session, to, challenge) => {
        status = code
        location = to
        wwwAuthenticate = challenge
        if (code < 300) outgoing.again = false
        const mayBegin = this.#version === undefined && outgoing.protocol === undefined
        if (session !== undefined && mayBegin && session !== this.#session) {
          this.#session = session
          this.#refreshHeaders()
        }
        if (code === 200 && type.startsWith('text/event-stream')) {
          streams = true
          return new EventStreamParser(onEvent, transportLimits.message)
        }
        return id === undefined && code < 300 ? 'discard' : 'collect'
      },
      onStart: this.#dialled,
      onEnd: (text) => {
        const next = follow(url, method, status, location, hops)
        if (next) {
          // Later requests go to the new address directly.
          this.#url = next
          this.#request(method, headers, body, outgoing, hops + 1)
          this.#done(key, answer)
          return
        }
        const { authorization } = this.#options
        if (authorization && text !== undefined && challengeOf(status, wwwAuthenticate, sent, false)) {
          challenged(authorization, text).catch((error: unknown) => {
            fail(error instanceof UpstreamError ? error : refusal(status, text))
            this.#done(key, answer)
          })
          return
        }
        if (text !== undefined && status === 200 && text !== '') take(text)
        inOrder(() => { ended(text) })
        return reader && new Promise((resolve) => { inOrder(resolve) })
      },
      onError: (error, sent) => { inOrder(() => { failed(error, sent) }) }
    }, this.#options, outgoing.owner)
    this.#open.set(key, answer)
    if (id === undefined) this.#later(notificationTimeout, () => { answer.abort(); this.#done(key, answer) })
    this.#dispatch(method, headers, body, answer, (value) => { sent = value })
  }

  /** Forgets an HTTP exchange that is over. */
  #done (key: number | string, answer: Answer): void {
    if (this.#open.get(key) === answer) this.#open.take(key)
    if (this.#open.size === 0) this.#onIdle?.()
    if (this.#expired) this.#expire()
  }

  /** The upstream has ended the session: the connection is closed once every open request has its own outcome. */
  #expire (): void {
    this.#expired = true
    if (this.#open.size === 0) {
      this.#receiver?.closed(new UpstreamError('expired', 'the upstream no longer knows our session', { isPublic: true }))
    }
  }

  #later (ms: number, run: () => void): void {
    const timer = setTimeout(() => { this.#timers.delete(timer); run() }, ms)
    this.#timers.add(timer)
    timer.unref()
  }
}
