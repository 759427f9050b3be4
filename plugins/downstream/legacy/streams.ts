import { eventText, primingText } from '../../../protocol/event-stream.ts'
import { BoundedMap } from '../../base/limits/index.ts'
import type { EventStream } from '../event-stream.ts'
import type { ReplyStream } from '../reply-channel.ts'
import { eventId, Replay, parseEventId } from './message-buffer.ts'
import { downstreamLimits } from '../limits.ts'

/** The delay after which a client resumes a broken stream, in ms. */
const retryDelay = 1_000

/**
 * An event stream of a session, with event ids for `Last-Event-ID`. It may outlive its connection, and be resumed on
 * another.
 */
class Stream implements ReplyStream {
  readonly number: number
  onResume: ((connection: EventStream) => void) | undefined
  readonly #replay: Replay
  readonly #primes: boolean
  #connection: EventStream | undefined
  #lastEvent = 0
  #primed = false
  #ended = false

  /** @param primes whether the client accepts priming events (SEP-1699) */
  constructor (number: number, replay: Replay, primes: boolean) {
    this.number = number
    this.#replay = replay
    this.#primes = primes
  }

  get connected (): boolean { return this.#connection?.open === true }
  get ended (): boolean { return this.#ended }
  get resumable (): boolean { return this.#primed || this.#lastEvent > 0 }

  /**
   * Continues on another connection. The first one begins with a priming event, so that the client can resume from the
   * start.
   */
  attach (connection: EventStream): void {
    const isFirst = this.#connection === undefined && !this.resumable
    this.#connection?.end()
    this.#connection = connection
    connection.onClose(() => { if (this.#connection === connection) this.#connection = undefined })
    if (isFirst && this.#primes) this.#prime(retryDelay)
  }

  send (data: string): void {
    const number = ++this.#lastEvent
    this.#replay.add(this.number, number, data)
    this.#connection?.write(eventText(data, eventId(this.number, number)))
  }

  /** Sends the events after the given one again. */
  replayAfter (number: number): void {
    for (const entry of this.#replay.after(this.number, number)) {
      this.#connection?.write(eventText(entry.data, eventId(this.number, entry.at)))
    }
  }

  pause (retry: number): void {
    this.#prime(retry)
    this.#connection?.end()
  }

  end (): void {
    this.#ended = true
    this.#connection?.end()
  }

  #prime (retry: number): void {
    this.#primed = true
    this.#connection?.write(primingText(eventId(this.number, this.#lastEvent), retry))
  }
}

/** A stream without a connection and a reply need not be kept. */
const options = {
  isEvictable: (_number: number, { connected, onResume }: Stream): boolean => !connected && onResume === undefined
}

/** The streams of one session that can be resumed by `Last-Event-ID`. */
export class ResumableStreams {
  readonly #owner: string
  readonly #primes: boolean
  readonly #streams = new BoundedMap<number, Stream>(downstreamLimits.resumableStreams, options)
  #replay: Replay | undefined
  #last = 0

  /** @param primes whether the client accepts priming events (SEP-1699) */
  constructor (owner: string, primes: boolean) {
    this.#owner = owner
    this.#primes = primes
  }

  open (): Stream {
    this.#replay ??= new Replay(this.#owner)
    const stream = new Stream(++this.#last, this.#replay, this.#primes)
    this.#streams.set(stream.number, stream)
    return stream
  }

  /** The stream of an event, and the event's number on it. */
  find (lastEventId: string | undefined): { stream: Stream, number: number } | undefined {
    const event = lastEventId === undefined ? undefined : parseEventId(lastEventId)
    const stream = event && this.#streams.get(event.stream)
    return stream && { stream, number: event.at }
  }

  /** Drops events that are too old to be resumed from. */
  expire (): void { this.#replay?.expire() }

  clear (): void { this.#replay?.clear() }
}
