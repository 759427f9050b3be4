import { eventText, primingEventText } from '../../../protocol/event-stream.ts'
import { BoundedMap } from '../../base/limits/index.ts'
import type { EventStream } from '../event-stream.ts'
import type { ReplyStream } from '../reply-channel.ts'
import { eventId, ReplayBuffer, parseEventId } from './message-buffer.ts'
import { downstreamLimits } from '../limits.ts'

/** The delay after which a client should resume a stream whose connection broke, in ms. */
const retryDelay = 1_000

/** An event stream of a session, with event ids for `Last-Event-ID`. It may be resumed on another connection. */
class ResumableStream implements ReplyStream {
  readonly number: number
  onResume: ((connection: EventStream) => void) | undefined
  readonly #replay: ReplayBuffer
  readonly #sendsPriming: boolean
  #connection: EventStream | undefined
  #lastEvent = 0
  #hasSentPriming = false
  #ended = false

  /** @param sendsPriming whether the client accepts priming events (SEP-1699) */
  constructor (number: number, replay: ReplayBuffer, sendsPriming: boolean) {
    this.number = number
    this.#replay = replay
    this.#sendsPriming = sendsPriming
  }

  get isConnected (): boolean { return this.#connection?.isOpen === true }
  get ended (): boolean { return this.#ended }
  get isResumable (): boolean { return this.#hasSentPriming || this.#lastEvent > 0 }

  /**
   * Continues the stream on a connection, and ends the former one. On the first connection, a priming event, if the
   * client accepts it, lets the client resume the stream.
   */
  attach (connection: EventStream): void {
    const isFirst = this.#connection === undefined && !this.isResumable
    this.#connection?.end()
    this.#connection = connection
    connection.onClose(() => { if (this.#connection === connection) this.#connection = undefined })
    if (isFirst && this.#sendsPriming) this.#sendPrimingEvent(retryDelay)
  }

  send (data: string): void {
    const number = ++this.#lastEvent
    this.#replay.add(this.number, number, data)
    this.#connection?.write(eventText(data, eventId(this.number, number)))
  }

  /** Sends again the kept events that follow the event with this number. */
  replayAfter (number: number): void {
    for (const entry of this.#replay.after(this.number, number)) {
      this.#connection?.write(eventText(entry.data, eventId(this.number, entry.number)))
    }
  }

  pause (retry: number): void {
    this.#sendPrimingEvent(retry)
    this.#connection?.end()
  }

  end (): void {
    this.#ended = true
    this.#connection?.end()
  }

  #sendPrimingEvent (retry: number): void {
    this.#hasSentPriming = true
    this.#connection?.write(primingEventText(eventId(this.number, this.#lastEvent), retry))
  }
}

/** Only streams that have no connection and carry no reply may be evicted. */
const evictionOptions = {
  isEvictable: (_number: number, { isConnected, onResume }: ResumableStream): boolean =>
    !isConnected && onResume === undefined
}

/** The streams of one session that can be resumed with `Last-Event-ID`. */
export class ResumableStreams {
  readonly #owner: string
  readonly #sendsPriming: boolean
  readonly #streams = new BoundedMap<number, ResumableStream>(downstreamLimits.resumableStreams, evictionOptions)
  #replay: ReplayBuffer | undefined
  #lastStreamNumber = 0

  /** @param sendsPriming whether the client accepts priming events (SEP-1699) */
  constructor (owner: string, sendsPriming: boolean) {
    this.#owner = owner
    this.#sendsPriming = sendsPriming
  }

  open (): ResumableStream {
    this.#replay ??= new ReplayBuffer(this.#owner)
    const stream = new ResumableStream(++this.#lastStreamNumber, this.#replay, this.#sendsPriming)
    this.#streams.set(stream.number, stream)
    return stream
  }

  /** Returns the stream of an event and the event's number on that stream; undefined if the stream is unknown. */
  find (lastEventId: string | undefined): { stream: ResumableStream, number: number } | undefined {
    const event = lastEventId === undefined ? undefined : parseEventId(lastEventId)
    const stream = event && this.#streams.get(event.stream)
    return stream && { stream, number: event.number }
  }

  /** Drops events that are older than `downstreamLimits.replayTime`. */
  expire (): void { this.#replay?.expire() }

  clear (): void { this.#replay?.clear() }
}
