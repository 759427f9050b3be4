import { limits } from '../../limits/index.ts'
import { parseEventId, Replay } from './replay.ts'
import { Stream } from './stream.ts'

/** The streams of one session that can be resumed by `Last-Event-ID`. Bounded. */
export class ResumableStreams {
  readonly #primes: boolean
  readonly #streams = new Map<number, Stream>()
  #replay: Replay | undefined
  #last = 0

  /** @param primes the client takes priming events (SEP-1699) */
  constructor (primes: boolean) {
    this.#primes = primes
  }

  open (): Stream {
    this.#replay ??= new Replay()
    const stream = new Stream(++this.#last, this.#replay, this.#primes)
    this.#streams.set(stream.number, stream)
    // A stream that carries nothing and has left the replay need not be remembered.
    for (const [number, old] of this.#streams) {
      if (this.#streams.size <= limits.resumableStreams) break
      if (old !== stream && !old.connected && old.onResume === undefined) this.#streams.delete(number)
    }
    return stream
  }

  /** The stream that an event was on, and the event's number there; undefined: it is not known (any more). */
  find (lastEventId: string | undefined): { stream: Stream, number: number } | undefined {
    const event = lastEventId === undefined ? undefined : parseEventId(lastEventId)
    const stream = event && this.#streams.get(event.stream)
    return stream && { stream, number: event.at }
  }

  /** Forgets what nobody has come back for in a long time. */
  expire (): void { this.#replay?.expire() }

  clear (): void { this.#replay?.clear() }
}
