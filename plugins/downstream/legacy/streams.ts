import { BoundedMap, limits } from '../../base/limits/index.ts'
import { parseEventId, Replay } from './replay.ts'
import { Stream } from './stream.ts'

/** A stream that carries nothing, and has left the replay, need not be kept. */
const options = { isEvictable: (_number: number, { connected, onResume }: Stream): boolean => !connected && onResume === undefined }

/** The streams of one session that can be resumed by `Last-Event-ID`. */
export class ResumableStreams {
  readonly #owner: string
  readonly #primes: boolean
  readonly #streams = new BoundedMap<number, Stream>(limits.resumableStreams, options)
  #replay: Replay | undefined
  #last = 0

  /** @param owner the session's @param primes whether the client accepts priming events (SEP-1699) */
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

  /** The stream of an event, and the event's number on it; undefined when the stream is unknown. */
  find (lastEventId: string | undefined): { stream: Stream, number: number } | undefined {
    const event = lastEventId === undefined ? undefined : parseEventId(lastEventId)
    const stream = event && this.#streams.get(event.stream)
    return stream && { stream, number: event.at }
  }

  /** Drops events that are too old to be resumed from. */
  expire (): void { this.#replay?.expire() }

  clear (): void { this.#replay?.clear() }
}
