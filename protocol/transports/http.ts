import type { Dispatcher } from 'undici'
import { code, UpstreamError } from '../errors.ts'
import { EventStreamParser, type StreamEvent } from '../event-stream.ts'
import { parseMessage, toRpcError, type Message } from '../message.ts'
import { Answer, networkFailure } from './http-answer.ts'
import { follow } from './redirect.ts'
import { Table } from '../table.ts'
import { transportLimits, type Receiver, type SendOptions, type Transport } from './transport.ts'

export interface HttpOptions {
  url: URL
  /** Extra headers, sent with every request. */
  headers: Record<string, string>
  /** Headers of the client that the connection is for, as they are now: they go where a message brings none of its own. None of them is in `headers`. */
  passed?: () => SendOptions['headers']
  /** Where the sockets come from: the outbound client decides which addresses may be reached. */
  dispatcher: Dispatcher
}

/** Reconnection of an event stream, in ms and tries, where the upstream says nothing else. */
const reconnect = { delay: 1_000, shortest: 500, longest: 30_000, tries: 5 }
/** A stream may stay open after the answer it was opened for; so long, in ms, and a notification may take so long. */
const afterAnswer = 1_000
const notificationTimeout = 10_000
/** How long the stream of news is waited for, in ms: some servers send its head with the first news only. */
const newsPatience = 500
const closeTimeout = 2_000
/** A stream of news that stood so long, in ms, was none that fails. */
const steady = 3_000
const postHeaders = ['content-type', 'application/json', 'accept', 'application/json, text/event-stream']

/**
 * MCP over streamable HTTP, the client's side (specification: Transports, "Streamable HTTP", revisions to 2025-11-25): a POST for
 * each message, whose answer is JSON or an event stream; a GET stream for news; streams resumed by `Last-Event-ID`.
 */
export class HttpTransport implements Transport {
  readonly #options: HttpOptions
  readonly #open = new Table<number | string, Answer>()
  readonly #timers = new Set<NodeJS.Timeout>()
  #receiver: Receiver | undefined
  #session: string | undefined
  #version: string | undefined
  #post: string[] = []
  #closed = false
  #notifications = 0
  #expired = false
  #hadNews = false
  #newsSettled: (() => void) | undefined
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
    this.#request('POST', headers === undefined && this.#options.passed === undefined ? this.#post : this.#headers(headers, ...postHeaders), text, id, headers)
  }

  drop (id: number): void {
    this.#open.take(id)?.abort()
  }

  async agreed (version: string): Promise<void> {
    this.#version = version
    this.#refreshHeaders()
    await new Promise<void>((resolve) => {
      this.#newsSettled = resolve
      this.#later(newsPatience, resolve)
      this.#listen(undefined, reconnect.delay, 0)
    })
  }

  async close (): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#receiver = undefined
    this.#newsSettled?.()
    for (const timer of this.#timers) clearTimeout(timer)
    // What was just said, that a call is cancelled, is still to arrive.
    for (const key of this.#open.keys()) if (typeof key === 'number' || key === 'news') this.#open.take(key)?.abort()
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
    this.#options.dispatcher.dispatch({ origin: this.#url.origin, path: this.#url.pathname + this.#url.search, method, headers, body, headersTimeout: 0, bodyTimeout: 0 }, answer)
  }

  /** One POST and all that comes of it. */
  #request (method: 'POST' | 'GET', headers: string[], body: string | null, id: number | undefined, passed: SendOptions['headers'], tries = 0, lastEventId?: string, hops = 0): void {
    const url = this.#url
    const key = id ?? `notification ${++this.#notifications}`
    let answered = false
    let last = lastEventId
    let retry: number | undefined
    let status = 0
    let streams = false
    let location: string | undefined
    const fail = (error: UpstreamError): void => {
      if (answered) return
      answered = true
      if (id !== undefined) this.#receiver?.failed(id, error)
      else if (error.fault === 'expired') this.#receiver?.closed(error)
    }
    const take = (text: string): void => {
      for (const message of parseAll(text)) {
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
      if (event.id !== undefined) last = event.id
      if (event.data !== '') tries = 0
      if (event.retry !== undefined) retry = Math.max(event.retry, reconnect.shortest)
      if (event.event === 'message' && event.data !== '') take(event.data)
    }
    /** The stream ended without the answer: it may be had by resuming. */
    const resume = (error: UpstreamError, polite: boolean): void => {
      if (answered || id === undefined || this.#closed) return
      if (last === undefined || tries >= reconnect.tries) { fail(error); return }
      const wait = retry ?? reconnect.delay
      if (polite) this.#receiver?.paused(id, wait)
      this.#later(wait, () => {
        if (this.#open.get(id) === answer) this.#request('GET', this.#headers(passed, 'accept', 'text/event-stream', 'last-event-id', last ?? ''), null, id, passed, tries + 1, last)
      })
    }
    const answer = new Answer({
      onHead: (code, type, session, to) => {
        status = code
        location = to
        if (session !== undefined && this.#version === undefined && session !== this.#session) { this.#session = session; this.#refreshHeaders() }
        if (code === 200 && type.startsWith('text/event-stream')) { streams = true; return new EventStreamParser(onEvent, transportLimits.message) }
        return id === undefined && code < 300 ? 'discard' : 'collect'
      },
      onEnd: (text) => {
        const next = follow(url, method, status, location, hops)
        if (next) {
          // Where one request was sent on to, the next ones go at once.
          this.#url = next
          this.#request(method, headers, body, id, passed, tries, lastEventId, hops + 1)
          this.#done(key, answer)
          return
        }
        if (text === undefined) {
          if (!answered) resume(new UpstreamError('broken', 'the upstream ended its stream without an answer'), true)
        } else if (status === 200 && text !== '') {
          take(text)
          if (!answered) fail(new UpstreamError('broken', 'the upstream answered, but not this request'))
        } else if (status >= 300 || id !== undefined) this.#refused(status, text, id, take, fail)
        if (answered || id === undefined) this.#done(key, answer)
      },
      onError: (error, sent) => {
        if (error instanceof UpstreamError) fail(error)
        else if (error instanceof RangeError) fail(new UpstreamError('broken', `the upstream's answer is too large: ${error.message}`))
        else if (error instanceof SyntaxError) fail(new UpstreamError('broken', `the upstream's answer cannot be read: ${error.message}`))
        else if (last !== undefined) resume(new UpstreamError('broken', networkFailure(error, this.#options.url)), false)
        else fail(new UpstreamError(sent ? 'broken' : 'unreachable', networkFailure(error, this.#options.url)))
        if (answered || id === undefined) this.#done(key, answer)
      }
    })
    this.#open.set(key, answer)
    if (id === undefined) this.#later(notificationTimeout, () => { answer.abort(); this.#done(key, answer) })
    this.#dispatch(method, headers, body, answer)
  }

  /** One exchange is over. When the session turned out to be gone, each request on its way says for itself what became of it. */
  #done (key: number | string, answer: Answer): void {
    if (this.#open.get(key) === answer) this.#open.take(key)
    if (this.#open.size === 0) this.#said?.()
    if (this.#expired && this.#open.size === 0) this.#receiver?.closed(new UpstreamError('expired', 'the upstream no longer knows our session'))
  }

  /** A status that is no success: what it means for the request. */
  #refused (status: number, text: string, id: number | undefined, take: (text: string) => void, fail: (error: UpstreamError) => void): void {
    if (status >= 400 && status !== 401 && id !== undefined && isAnswer(text, id)) take(text)
    else if (this.#session !== undefined && (status === 404 || (status === 400 && /session/i.test(text.slice(0, 1_000))))) {
      fail(new UpstreamError('expired', 'the upstream no longer knows our session'))
    } else if (status === 401) fail(new UpstreamError('unauthorized', 'the upstream wants credentials (HTTP 401): check the configured headers'))
    else {
      try { if (status >= 400) take(text) } catch {}
      // What stands before it gave up: it may be at work.
      fail(new UpstreamError(status === 502 || status === 504 ? 'broken' : 'refused', `the upstream answered HTTP ${status}`))
    }
  }

  /** Holds a GET stream open for news that belong to no request; an upstream that offers none answers 405, or anything but 200. */
  #listen (lastEventId: string | undefined, delay: number, failures: number): void {
    let last = lastEventId
    let opened = false
    let heard = false
    let status = 0
    let wait = delay
    const begun = Date.now()
    /** A stream that lasted is no failure: something on the way ends the idle ones. */
    const lasted = (): boolean => heard || Date.now() - begun > steady
    const again = (failed: number): void => {
      this.#open.take('news')
      if (!this.#closed) this.#later(Math.min(wait * 2 ** failed, reconnect.longest), () => { this.#listen(last, delay, failed) })
    }
    const answer = new Answer({
      onHead: (code, type) => {
        status = code
        this.#newsSettled?.()
        opened = code === 200 && type.startsWith('text/event-stream')
        // At first it says "no such stream here"; where there was one, "no such session any more".
        if (code === 404 && this.#session !== undefined && this.#hadNews) this.#expired = true
        this.#hadNews ||= opened
        if (!opened) return 'discard'
        return new EventStreamParser((event) => {
          if (event.id !== undefined) last = event.id
          if (event.retry !== undefined) wait = Math.max(event.retry, reconnect.shortest)
          heard ||= event.data !== ''
          if (event.event !== 'message' || event.data === '') return
          for (const message of parseAll(event.data)) this.#receiver?.message(message, undefined)
        }, transportLimits.message)
      },
      onEnd: () => {
        if (opened) again(lasted() ? 0 : Math.min(failures + 1, 5))
        else if (status === 429 || status >= 500) again(failures + 1)
        else this.#done('news', answer)
      },
      onError: (error, sent) => {
        this.#newsSettled?.()
        if (opened) again(lasted() ? 0 : Math.min(failures + 1, 5))
        else if (!sent && failures > 0) this.#receiver?.closed(new UpstreamError('broken', networkFailure(error, this.#options.url)))
        else again(failures + 1)
      }
    })
    this.#open.set('news', answer)
    this.#dispatch('GET', this.#headers(undefined, 'accept', 'text/event-stream', ...(last === undefined ? [] : ['last-event-id', last])), null, answer)
  }

  #later (ms: number, run: () => void): void {
    const timer = setTimeout(() => { this.#timers.delete(timer); run() }, ms)
    this.#timers.add(timer)
    timer.unref()
  }
}

/** The codes that servers answer with under the id of a request whose session they do not know. */
const saysGone = (errorText: string | undefined): boolean => errorText !== undefined && [code.badRequest, code.unavailable].some((each) => each === toRpcError(errorText).code)

/** True for an answer to this very request, whatever its status: not for one that says that our session is gone. */
function isAnswer (text: string, id: number): boolean {
  try {
    return parseAll(text).some((message) => message.kind === 'response' && message.id === id && !saysGone(message.errorText))
  } catch {
    return false
  }
}

/** The messages of one text. @throws SyntaxError when it holds none */
function parseAll (text: string): Message[] {
  try {
    const message = parseMessage(text, transportLimits.depth)
    return Array.isArray(message) ? message : [message]
  } catch (error) {
    throw new SyntaxError(error instanceof Error ? error.message : String(error))
  }
}
