import type { ClientCapabilities } from '../../../protocol/capabilities.ts'
import { rpcCode, RpcError } from '../../../protocol/errors.ts'
import type { RequestHeaders, Question } from '../../../protocol/exchange.ts'
import { allowsPolling, type LegacyVersion } from '../../../protocol/legacy/versions.ts'
import { passesLogLevel, type LogLevel, type Listener } from '../../../protocol/listener.ts'
import {
  cancelledKeyOf, notificationText, type Notification, type RequestId, type Response
} from '../../../protocol/message.ts'
import { RequestTable } from '../../../protocol/table.ts'
import { detachedCopy, memoryOf } from '../../../protocol/text.ts'
import type { View } from '../../settings/index.ts'
import { type Release } from '../../base/limits/index.ts'
import type { EventStream } from '../event-stream.ts'
import type { AskableClient, LegacyExchange } from './exchange.ts'
import { MessageBuffer } from './message-buffer.ts'
import { OpenQuestions } from './questions.ts'
import { ResumableStreams } from './streams.ts'
import { downstreamLimits } from '../limits.ts'

/** A stream for messages that belong to none of the client's requests. */
export interface StandaloneChannel {
  readonly isConnected: boolean
  send: (text: string) => void
  end: () => void
}

/** A place among the limited number of sessions, reserved for an owner before the session starts. */
export interface SessionReservation { readonly owner: string, readonly release: Release }

let lastSession = 0

/** A session of a legacy client. It represents the client, and is the client's listener for notifications. */
export class Session implements AskableClient, Listener<View> {
  /** A unique internal id, under which upstreams store links, log levels and subscriptions. */
  readonly id = `session ${++lastSession}`
  /**
   * The id that the client sends (`Mcp-Session-Id`). It is not a credential: a client chooses the id of a rebuilt
   * session.
   */
  readonly sessionId: string
  readonly view: View
  readonly version: LegacyVersion
  readonly capabilities: ClientCapabilities
  /** The place of the session. Released when the session ends. */
  readonly reservation: SessionReservation
  readonly streams: ResumableStreams
  /** The open requests, by `requestKeyOf` the client's ids. */
  readonly exchanges = new RequestTable<RequestId, LegacyExchange>()
  level: LogLevel | undefined
  lastUsed = Date.now()
  readonly #channels = new Set<StandaloneChannel>()
  // The members below are created on first use, since most sessions are idle.
  #questions: OpenQuestions | undefined
  /** Messages that wait until the client opens a channel. */
  #waiting: MessageBuffer<{ data: string }> | undefined
  /** Callbacks of questions that wait for a channel. */
  #awaitingChannel: Set<() => void> | undefined
  #ended = false

  constructor (
    sessionId: string, view: View, version: LegacyVersion, capabilities: ClientCapabilities,
    reservation: SessionReservation
  ) {
    this.sessionId = sessionId
    this.view = view
    this.version = version
    this.capabilities = capabilities
    this.reservation = reservation
    this.streams = new ResumableStreams(this.owner, this.canPoll)
  }

  get user (): string { return this.view.principal.user }
  get principalKey (): string { return this.view.principal.key }
  get owner (): string { return this.reservation.owner }
  get listener (): Listener<View> { return this }
  get hasEnded (): boolean { return this.#ended }

  get questions (): OpenQuestions {
    this.#questions ??= new OpenQuestions(this.owner)
    return this.#questions
  }

  headersOf (method: string): RequestHeaders | undefined {
    return this.exchanges.values().find((exchange) => exchange.method === method)?.headers
  }

  /** Whether the client is connected: a request is in flight or a channel is open. */
  get isBusy (): boolean {
    return this.exchanges.size > 0 || [...this.#channels].some(({ isConnected }) => isConnected)
  }

  /** Whether the client can poll a closed stream (SEP-1699). */
  get canPoll (): boolean { return allowsPolling(this.version) }

  /** Whether a GET may resume a stream, or open another one. */
  canOpenStream (lastEventId: string | undefined): boolean {
    if (this.streams.find(lastEventId)) return true
    return [...this.#channels].filter(({ isConnected }) => isConnected).length < downstreamLimits.streamsPerSession
  }

  /** Serves a GET: opens a new channel, or resumes a broken stream. */
  listen (connection: EventStream, lastEventId: string | undefined): void {
    const resumed = this.streams.find(lastEventId)
    const stream = resumed?.stream ?? this.streams.open()
    stream.attach(connection)
    if (resumed) stream.replayAfter(resumed.number)
    if (stream.onResume) stream.onResume(connection)
    else if (stream.ended) connection.end()
    else this.addChannel(stream, connection)
  }

  /**
   * Adds a channel for messages that belong to none of the client's requests, until the connection closes, and sends
   * the messages that waited for a channel.
   */
  addChannel (channel: StandaloneChannel, connection: EventStream): void {
    this.#channels.add(channel)
    connection.onClose(() => {
      this.lastUsed = Date.now()
      if (!channel.isConnected) this.#channels.delete(channel)
    })
    for (const { data } of this.#waiting?.clear() ?? []) channel.send(data)
    for (const resume of this.#awaitingChannel ?? []) resume()
    this.#awaitingChannel = undefined
  }

  deliver (method: string, paramsText?: string): void {
    if (passesLogLevel(this.level, method, paramsText)) this.send(notificationText(method, paramsText))
  }

  /** Sends a message on one channel. Without an open channel, the message waits in a buffer, unless it is too large. */
  send (text: string): void {
    if (this.#ended) return
    const channel = this.#channel()
    if (channel) { channel.send(text); return }
    if (memoryOf(text) > downstreamLimits.waitingSize) return
    this.#waiting ??= new MessageBuffer(this.owner, downstreamLimits.waitingMessages, downstreamLimits.waitingSize)
    // Equal notifications are buffered once, except log messages.
    if (!text.includes('"notifications/message"') && [...this.#waiting.entries].some(({ data }) => data === text)) {
      return
    }
    this.#waiting.add({ data: detachedCopy(text) })
  }

  async ask (question: Question): Promise<Response> {
    const channel = this.#channel() ?? await this.#nextChannel()
    if (!channel) {
      throw new RpcError(
        rpcCode.internal, 'The client has no open stream on which it could receive a request', 'internal'
      )
    }
    return await this.askOn((text) => { channel.send(text) }, question)
  }

  async askOn (send: (text: string) => void, question: Question): Promise<Response> {
    if (this.#ended) throw new RpcError(rpcCode.internal, 'The client has disconnected', 'internal')
    return await this.questions.ask(send, question)
  }

  /** Handles a notification that is meant for the gateway. @returns false if it is meant for servers */
  receive (notification: Notification): boolean {
    const { method, params, paramsText } = notification
    switch (method) {
      case 'notifications/initialized': return true
      case 'notifications/cancelled': {
        const { reason } = params
        const why = typeof reason === 'string' ? reason : 'the client cancelled the request'
        const key = cancelledKeyOf(notification)
        if (key !== undefined) this.exchanges.get(key)?.cancel(why, paramsText)
        return true
      }
      case 'notifications/progress':
        this.questions.progress(params.progressToken, paramsText)
        return true
      default: return false
    }
  }

  /** Ends the requests, questions and streams of the session. */
  end (reason: string): void {
    this.#ended = true
    for (const exchange of this.exchanges.values()) {
      exchange.end(new RpcError(
        rpcCode.unavailable, `The session has ended: ${reason}. The request may have run`, 'cancelled'
      ))
    }
    this.#questions?.clear()
    this.closeChannels()
    this.#waiting?.clear()
    this.streams.clear()
  }

  /** Ends the streams for messages that belong to none of the client's requests. */
  closeChannels (): void {
    for (const channel of this.#channels) channel.end()
    this.#channels.clear()
  }

  /** Returns the newest open channel. Older ones may have broken unnoticed when the client changed its network. */
  #channel (): StandaloneChannel | undefined {
    let newest: StandaloneChannel | undefined
    for (const channel of this.#channels) {
      if (channel.isConnected) newest = channel
      else this.#channels.delete(channel)
    }
    return newest
  }

  /** Waits up to `streamOpenTimeout` ms for a channel, since a new client may be about to open one. */
  async #nextChannel (): Promise<StandaloneChannel | undefined> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, downstreamLimits.streamOpenTimeout).unref()
      this.#awaitingChannel ??= new Set()
      this.#awaitingChannel.add(() => { clearTimeout(timer); resolve() })
    })
    return this.#channel()
  }
}
