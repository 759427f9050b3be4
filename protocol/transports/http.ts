import type { Dispatcher } from 'undici'
import { RpcError, UpstreamError } from '../errors.ts'
import { EventStreamParser, type StreamEvent } from '../event-stream.ts'
import { Table } from '../table.ts'
import { Answer, networkFailure } from './http-answer.ts'
import { NewsStream } from './news-stream.ts'
import { mayPass, reconnect } from './reconnect.ts'
import { follow } from './redirect.ts'
import { isAnswer, refusal } from './refusal.ts'
import { messagesIn, transportLimits, type Receiver, type SendOptions, type Transport } from './transport.ts'

export interface HttpOptions {
  url: URL
  /** Extra headers, sent with every request. */
  headers: Record<string, string>
  /** Headers of the client that the connection is for, as they are now: they go where a message brings none of its own. None of them is in `headers`. */
  passed?: () => SendOptions['headers']
  /** Where the sockets come from: the outbound client decides which addresses may be reached. */
  dispatcher: Dispatcher
}

/** One request, through all the streams that its answer may come by. */
interface Asked {
  /** Undefined: a notification, or an answer of ours. */
  id: number | undefined
  /** Headers of the client that it is for. */
  passed: SendOptions['headers']
  /** The last event of its stream, to resume it from. */
  last?: string
  /** How long before that, in ms. */
  wait: number
  /** How often that has brought nothing, in a row. */
  tries: number
}

/** How often in a row a stream is asked for that does not come. */
const mostTries = 5
/** A stream may stay open after the answer it was opened for; so long, in ms, and a notification may take so long. */
const afterAnswer = 1_000
const notificationTimeout = 10_000
const closeTimeout = 2_000
const postHeaders = ['content-type', 'application/json', 'accept', 'application/json, text/event-stream']
/** An event id may have any characters (HTML, "Server-sent events"): it goes as UTF-8, and not at all where no header can carry it. */
const getHeaders = (lastEventId: string | undefined): string[] => [
  'accept',
  'text/event-stream',
  ...(lastEventId === undefined || /\p{Cc}/u.test(lastEventId) ? [] : ['last-event-id', Buffer.from(lastEventId).toString('latin1')])
]

/**
 * MCP over streamable HTTP, the client's side (specification: Transports, "Streamable HTTP", revisions to 2025-11-25): a POST for
 * each message, whose answer is JSON or an event stream, resumed by `Last-Event-ID`; beside them a stream of news.
 */
export class HttpTransport implements Transport {
  readonly #options: HttpOptions
  readonly #open = new Table<number | string, Answer>()
  readonly #timers = new Set<NodeJS.Timeout>()
  readonly #news = new NewsStream({
    ask: (answer, lastEventId) => { this.#dispatch('GET', this.#headers(undefined, ...getHeaders(lastEventId)), null, answer) },
    message: (message) => { this.#receiver?.message(message, undefined) },
    refused: (status, text) => { if (refusal(status, text, this.#session !== undefined).fault === 'expired') this.#expire() },
    lost: (error) => { this.#receiver?.closed(new UpstreamError('broken', networkFailure(error, this.#options.url))) }
  })

  #receiver: Receiver | undefined
  #session: string | undefined
  #version: string | undefined
  #post: string[] = []
  #closed = false
  #notifications = 0
  #expired = false
  /** Told when nothing is on its way any more. */
  #said: (() => void) | undefined
  #url: URL

  constructor (options: HttpOptions) {
    this.#options = options
    this.#url = options.url
    this.#refreshHeaders()
  }

  async start (receiver: Receiver): Promise<void> {
    this.#receiver = receiver
  }

  send (text: string, options?: SendOptions): void {
    if (this.#closed) return
    const { id, headers } = options ?? {}
    const own = headers === undefined && this.#options.passed === undefined
    this.#request('POST', own ? this.#post : this.#headers(headers, ...postHeaders), text, {
      id,
      passed: headers,
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
    // What was just said, that a call is cancelled, is still to arrive; and the session that is being made, to be ended.
    if (this.#version !== undefined) for (const key of this.#open.keys()) if (typeof key === 'number') this.#open.take(key)?.abort()
    if (this.#open.size > 0) await new Promise<void>((resolve) => { this.#said = resolve; setTimeout(resolve, closeTimeout).unref() })
    for (const key of this.#open.keys()) this.#open.take(key)?.abort()
    if (this.#session === undefined) return
    await new Promise<void>((resolve) => {
      const answer = new Answer({ onHead: () => 'discard', onEnd: () => { resolve() }, onError: () => { resolve() } })
      setTimeout(() => { answer.abort(); resolve() }, closeTimeout).unref()
      this.#dispatch('DELETE', this.#headers(undefined), null, answer)
    })
  }

  /** @param passed of the client that a message is sent for; undefined: of the one that the connection is for */
  #headers (passed: SendOptions['headers'], ...more: string[]): string[] {
    const headers = Object.entries({ ...passed ?? this.#options.passed?.(), ...this.#options.headers }).flat()
    if (this.#session !== undefined) headers.push('mcp-session-id', this.#session)
    if (this.#version !== undefined) headers.push('mcp-protocol-version', this.#version)
    headers.push(...more)
    return headers
  }

  #refreshHeaders (): void {
    this.#post = this.#headers(undefined, ...postHeaders)
  }

  #dispatch (method: 'POST' | 'GET' | 'DELETE', headers: string[], body: string | null, answer: Answer): void {
    this.#options.dispatcher.dispatch(
      { origin: this.#url.origin, path: this.#url.pathname + this.#url.search, method, headers, body, headersTimeout: 0, bodyTimeout: 0 },
      answer
    )
  }

  /** One POST, or one GET that resumes its stream, and all that comes of it. */
  #request (method: 'POST' | 'GET', headers: string[], body: string | null, asked: Asked, hops = 0): void {
    const url = this.#url
    const { id } = asked
    const key = id ?? `notification ${++this.#notifications}`
    let answered = false
    let status = 0
    let streams = false
    let location: string | undefined
    const fail = (error: UpstreamError): void => {
      if (answered) return
      answered = true
      this.#expired ||= error.fault === 'expired'
      if (id === undefined) return
      // Whatever keeps the rest of a stream from us: the request was taken, and may have run.
      const lost = method === 'GET' && error.fault !== 'broken'
      this.#receiver?.failed(id, lost ? new UpstreamError('broken', `its broken stream could not be resumed: ${error.message}`) : error)
    }
    const take = (text: string): void => {
      for (const message of messagesIn(text)) {
        // An answer stands on its own request's stream: another's would be somebody else's.
        if (message.kind === 'response' && (id === undefined || (message.id !== id && message.id !== null))) continue
        if (message.kind === 'response' && id !== undefined) {
          answered = true
          this.#receiver?.message({ ...message, id }, id)
          if (streams) this.#later(method === 'GET' ? 0 : afterAnswer, () => { answer.abort(); this.#done(key, answer) })
        } else this.#receiver?.message(message, id)
      }
    }
    const onEvent = (event: StreamEvent): void => {
      asked.tries = 0
      if (event.id !== undefined) asked.last = event.id
      if (event.retry !== undefined) asked.wait = Math.max(event.retry, reconnect.shortest)
      if (event.event === 'message' && event.data !== '') take(event.data)
    }
    /** The stream is not there and the answer was not on it: it may be had by resuming. */
    const resume = (error: UpstreamError, polite: boolean): void => {
      if (answered || id === undefined || this.#closed) return
      if (asked.last === undefined || asked.tries >= mostTries) { fail(error); return }
      if (polite) this.#receiver?.paused(id, asked.wait)
      this.#later(asked.wait, () => {
        asked.tries++
        if (this.#open.get(id) === answer) this.#request('GET', this.#headers(asked.passed, ...getHeaders(asked.last)), null, asked)
      })
    }
    const refused = (text: string): void => {
      if (id !== undefined && isAnswer(status, text, id)) { take(text); return }
      const error = refusal(status, text, this.#session !== undefined)
      if (method === 'GET' && mayPass(status)) { resume(error, false); return }
      // An error without an id is the request's own; what a GET is answered is about its stream.
      if (method === 'POST' && status >= 400 && !error.didNotRun) try { take(text) } catch {}
      fail(error)
    }
    const answer = new Answer({
      onHead: (code, type, session, to) => {
        status = code
        location = to
        if (session !== undefined && this.#version === undefined && session !== this.#session) {
          this.#session = session
          this.#refreshHeaders()
        }
        if (code === 200 && type.startsWith('text/event-stream')) {
          streams = true
          return new EventStreamParser(onEvent, transportLimits.message)
        }
        return id === undefined && code < 300 ? 'discard' : 'collect'
      },
      onEnd: (text) => {
        const next = follow(url, method, status, location, hops)
        if (next) {
          // Where one request was sent on to, the next ones go at once.
          this.#url = next
          this.#request(method, headers, body, asked, hops + 1)
          this.#done(key, answer)
          return
        }
        if (text === undefined) {
          // A stream that was had and ended in good order is how an upstream lets itself be polled, as often as it likes.
          asked.tries = 0
          resume(new UpstreamError('broken', 'the upstream ended its stream without an answer'), true)
        } else if (status === 200 && text !== '') {
          take(text)
          if (!answered) fail(new UpstreamError('broken', 'the upstream answered, but not this request'))
        } else if (status >= 300 || id !== undefined) refused(text)
        if (answered || id === undefined) this.#done(key, answer)
      },
      onError: (error, sent) => {
        if (error instanceof UpstreamError) fail(error)
        else if (error instanceof RangeError) fail(new UpstreamError('broken', `the upstream's answer is too large: ${error.message}`))
        else if (error instanceof SyntaxError || error instanceof RpcError) {
          fail(new UpstreamError('broken', `the upstream's answer cannot be read: ${error.message}`))
        } else if (asked.last !== undefined) resume(new UpstreamError('broken', networkFailure(error, this.#options.url)), false)
        else fail(new UpstreamError(sent ? 'broken' : 'unreachable', networkFailure(error, this.#options.url)))
        if (answered || id === undefined) this.#done(key, answer)
      }
    })
    this.#open.set(key, answer)
    if (id === undefined) this.#later(notificationTimeout, () => { answer.abort(); this.#done(key, answer) })
    this.#dispatch(method, headers, body, answer)
  }

  /** One exchange is over. */
  #done (key: number | string, answer: Answer): void {
    if (this.#open.get(key) === answer) this.#open.take(key)
    if (this.#open.size === 0) this.#said?.()
    if (this.#expired) this.#expire()
  }

  /** The session turned out to be gone: each request on its way says for itself what became of it, then the connection is over. */
  #expire (): void {
    this.#expired = true
    if (this.#open.size === 0) this.#receiver?.closed(new UpstreamError('expired', 'the upstream no longer knows our session'))
  }

  #later (ms: number, run: () => void): void {
    const timer = setTimeout(() => { this.#timers.delete(timer); run() }, ms)
    this.#timers.add(timer)
    timer.unref()
  }
}
