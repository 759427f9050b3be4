import { code, RpcError } from '../../../protocol/errors.ts'
import type { Client, Question } from '../../../protocol/exchange.ts'
import { isObject, memberOf, withMembers } from '../../../protocol/json.ts'
import type { ClientCapabilities } from '../../../protocol/capabilities.ts'
import { allowsPolling, type LegacyVersion } from '../../../protocol/legacy/versions.ts'
import { reaches, type Level, type Listener } from '../../../protocol/listener.ts'
import { notificationText, requestText, type Notification, type RequestId, type Response } from '../../../protocol/message.ts'
import { Table } from '../../../protocol/table.ts'
import type { List } from '../../gateway/list.ts'
import type { View } from '../../access/view.ts'
import { limits } from '../../limits/index.ts'
import type { EventStream } from '../event-stream.ts'
import type { HttpExchange } from '../exchange.ts'
import { parseEventId, Replay } from './replay.ts'
import { MessageBuffer } from './message-buffer.ts'
import { Stream } from './stream.ts'

interface OpenQuestion {
  question: Question
  size: number
  resolve: (response: Response) => void
  reject: (error: RpcError) => void
  timer: NodeJS.Timeout
}

let lastSession = 0
/** Characters of the questions that are open to all clients. */
let asked = 0

/** A legacy session: a client that can be asked and told things, and the streams that reach it. */
export class Session implements Client, Listener<View> {
  /** Ours alone, and never another session's: what links, levels and subscriptions are kept by. */
  readonly id = `session ${++lastSession}`
  /** What the client sends. Clients can choose it (rebuild), so nothing but the look-up of this session hangs on it. */
  readonly sessionId: string
  readonly view: View
  readonly version: LegacyVersion
  readonly capabilities: ClientCapabilities
  level: Level | undefined
  lastUsed = Date.now()
  /** Requests in flight, by the client's id. */
  readonly exchanges = new Table<RequestId, HttpExchange>()
  /** The lists that the client saw last, by method. */
  readonly seen = new Map<string, List>()
  readonly #questions = new Map<number, OpenQuestion>()
  readonly #news = new Set<Stream>()
  readonly #resumable = new Map<number, Stream>()
  #replay: Replay | undefined
  readonly #waiting = new MessageBuffer<{ data: string }>(limits.waitingMessages, limits.waitingSize)
  /** Who waits for a stream. */
  readonly #expecting = new Set<() => void>()
  #lastQuestion = 0
  #asked = 0
  #lastStream = 0
  #ended = false

  constructor (sessionId: string, view: View, version: LegacyVersion, capabilities: ClientCapabilities) {
    this.sessionId = sessionId
    this.view = view
    this.version = version
    this.capabilities = capabilities
  }

  get user (): string {
    return this.view.principal.user
  }

  get principal (): string {
    return this.view.principal.key
  }

  get ended (): boolean {
    return this.#ended
  }

  headersOf (method: string): HttpExchange['headers'] | undefined {
    return this.exchanges.values().find((exchange) => exchange.method === method)?.headers
  }

  /** True while the client is there: something is in flight or a stream is open. */
  get busy (): boolean {
    return this.exchanges.size > 0 || [...this.#news].some((stream) => stream.connected)
  }

  /** True when a stream that breaks can be taken up again. */
  get polls (): boolean {
    return allowsPolling(this.version)
  }

  /** A stream for one POST's answers. */
  newStream (): Stream {
    this.#replay ??= new Replay()
    const stream = new Stream(++this.#lastStream, this.#replay)
    this.#resumable.set(stream.number, stream)
    // What has ended and been pushed out of the replay need not be remembered either.
    for (const [number, old] of this.#resumable) {
      if (this.#resumable.size <= limits.resumableStreams) break
      if (old !== stream && !old.connected && !this.exchanges.values().some((exchange) => exchange.carriedBy(old))) {
        this.#resumable.delete(number)
      }
    }
    return stream
  }

  /** True when a GET may open one more stream, or takes up one that there is. */
  takesStream (lastEventId: string | undefined): boolean {
    return (
      this.#resumed(lastEventId) !== undefined || [...this.#news].filter((stream) => stream.connected).length < limits.streamsPerSession
    )
  }

  /** A GET stream: for news, or the continuation of one that broke. */
  listen (connection: EventStream, lastEventId: string | undefined): void {
    const resumed = this.#resumed(lastEventId)
    const stream = resumed?.stream ?? this.newStream()
    stream.attach(connection)
    if (resumed) stream.replayAfter(resumed.at)
    else if (this.polls) stream.prime()
    const carries = this.exchanges.values().find((exchange) => exchange.carriedBy(stream))
    if (carries) {
      carries.resumed(connection)
      return
    }
    if (stream.ended) {
      connection.end()
      return
    }
    this.#news.add(stream)
    connection.onClose(() => {
      this.lastUsed = Date.now()
      if (!stream.connected) this.#news.delete(stream)
    })
    for (const { data } of this.#waiting.clear()) stream.send(data)
    for (const go of this.#expecting) go()
    this.#expecting.clear()
  }

  deliver (method: string, paramsText?: string): void {
    this.send(notificationText(method, paramsText))
  }

  /** Each message goes to one stream; what comes while none is open waits, bounded. */
  send (text: string): void {
    if (this.#ended) return
    const stream = this.#open()
    if (stream) {
      stream.send(text)
      return
    }
    if (text.length > limits.waitingSize) return
    // News of the same change are one; two messages are two, though they say the same.
    if (!text.includes('"notifications/message"') && [...this.#waiting.entries].some(({ data }) => data === text)) return
    this.#waiting.add({ data: text })
  }

  notify (method: string, paramsText: string): void {
    if (this.hears(method, paramsText)) this.deliver(method, paramsText)
  }

  /** False for a log message below the level that the client asked for. */
  hears (method: string, paramsText: string): boolean {
    if (method !== 'notifications/message' || this.level === undefined) return true
    const { level } = JSON.parse(paramsText) as { level?: unknown }
    return reaches(level, this.level)
  }

  async ask (question: Question): Promise<Response> {
    const stream = this.#open() ?? (await this.#opened())
    if (!stream) throw new RpcError(code.internal, 'The client holds no stream open on which it could be asked')
    return await this.askOn((text) => {
      stream.send(text)
    }, question)
  }

  /** The stream that an event was on, and the event's place in it. */
  #resumed (lastEventId: string | undefined): { stream: Stream; at: number } | undefined {
    const event = lastEventId === undefined ? undefined : parseEventId(lastEventId)
    const stream = event && this.#resumable.get(event.stream)
    return stream && { stream, at: event.at }
  }

  /** The next stream that the client opens: one that has just begun is about to. */
  async #opened (): Promise<Stream | undefined> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, limits.streamOpenTimeout).unref()
      this.#expecting.add(() => {
        clearTimeout(timer)
        resolve()
      })
    })
    return this.#open()
  }

  /** Asks by a JSON-RPC request; the client answers with a POST. @param send puts a message on the stream that the question belongs to */
  async askOn (send: (text: string) => void, question: Question): Promise<Response> {
    if (this.#ended) throw new RpcError(code.internal, 'The client is gone')
    const size = question.paramsText.length
    if (
      this.#questions.size >= limits.questionsPerSession ||
      this.#asked + size > limits.questionsSize ||
      asked + size > limits.allQuestionsSize
    ) {
      throw new RpcError(code.internal, 'Too many questions are open to this client')
    }
    const id = ++this.#lastQuestion
    const meta = question.params._meta
    const hasToken = isObject(meta) && meta.progressToken !== undefined
    const paramsText = hasToken
      ? withMembers(question.paramsText, {
        _meta: withMembers(memberOf(question.paramsText, '_meta') ?? '{}', { progressToken: String(id) })
      })
      : question.paramsText
    return await new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#dismiss(id, 'The client did not answer in time', send)
      }, limits.questionTimeout).unref()
      this.#questions.set(id, { question, size, resolve, reject, timer })
      this.#asked += size
      asked += size
      question.signal.addEventListener(
        'abort',
        () => {
          this.#dismiss(id, String(question.signal.reason), send)
        },
        { once: true }
      )
      send(requestText(id, question.method, paramsText))
    })
  }

  /** A response that the client posted. False when nothing was asked under this id. */
  answer (response: Response): boolean {
    const open = typeof response.id === 'number' ? this.#take(response.id) : undefined
    open?.resolve(response)
    return open !== undefined
  }

  /** A notification that the client posted, in so far as it is for this hop. False: it is for the upstreams. */
  hear ({ method, params, paramsText }: Notification): boolean {
    if (method === 'notifications/initialized') return true
    if (method === 'notifications/cancelled') {
      const { requestId, reason } = params
      if (typeof requestId === 'string' || typeof requestId === 'number') {
        this.exchanges.get(requestId)?.cancel(typeof reason === 'string' ? reason : 'the client cancelled the request')
      }
      return true
    }
    if (method === 'notifications/progress') {
      if (typeof params.progressToken === 'number') this.#questions.get(params.progressToken)?.question.progress(paramsText)
      return true
    }
    return false
  }

  /** Ends all that hangs on it. */
  end (reason: string): void {
    this.#ended = true
    for (const exchange of this.exchanges.values()) exchange.cancel(reason)
    for (const id of this.#questions.keys()) this.#take(id)?.reject(new RpcError(code.internal, 'The client is gone'))
    this.closeStreams()
    this.#waiting.clear()
    this.#replay?.clear()
  }

  /** Forgets what its client has not come back for in a long time. */
  tidy (): void {
    this.#replay?.expire()
  }

  closeStreams (): void {
    for (const stream of this.#news) stream.end()
    this.#news.clear()
  }

  /** Gives up the questions that belong to a request that is over. */
  #dismiss (id: number, reason: string, send: (text: string) => void): void {
    const open = this.#take(id)
    if (!open) return
    send(notificationText('notifications/cancelled', JSON.stringify({ requestId: id, reason })))
    open.reject(new RpcError(code.internal, reason))
  }

  #take (id: number): OpenQuestion | undefined {
    const open = this.#questions.get(id)
    if (!open) return undefined
    this.#questions.delete(id)
    this.#asked -= open.size
    asked -= open.size
    clearTimeout(open.timer)
    return open
  }

  #open (): Stream | undefined {
    // The newest: an older one may be dead without a word, where a network changed.
    let newest: Stream | undefined
    for (const stream of this.#news) {
      if (stream.connected) newest = stream
      else this.#news.delete(stream)
    }
    return newest
  }
}
