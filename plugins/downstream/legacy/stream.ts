import { eventText, primingText } from '../../../protocol/event-stream.ts'
import type { EventStream } from '../event-stream.ts'
import { eventId, type Replay } from './replay.ts'

const retryDelay = 1_000

/** A stream of one session as its client numbers it: it may outlive the connection that carries it, and be resumed on another. */
export class Stream {
  readonly number: number
  readonly #replay: Replay
  #connection: EventStream | undefined
  #at = 0
  #primed = false
  #ended = false

  constructor (number: number, replay: Replay) {
    this.number = number
    this.#replay = replay
  }

  get connected (): boolean { return this.#connection?.open === true }
  get ended (): boolean { return this.#ended }
  /** True when its client was given an id to resume from. */
  get resumable (): boolean { return this.#primed || this.#at > 0 }

  /** Carries on over a (new) connection. */
  attach (connection: EventStream): void {
    this.#connection?.end()
    this.#connection = connection
    connection.onClose(() => { if (this.#connection === connection) this.#connection = undefined })
  }

  /** Gives the client an id to resume from before anything can be lost (SEP-1699). */
  prime (retry = retryDelay): void {
    this.#primed = true
    this.#connection?.write(primingText(eventId(this.number, this.#at), retry))
  }

  send (data: string): void {
    const at = ++this.#at
    this.#replay.add(this.number, at, data)
    this.#connection?.write(eventText(data, eventId(this.number, at)))
  }

  /** Sends again what came after an event. */
  replayAfter (at: number): void {
    for (const entry of this.#replay.after(this.number, at)) this.#connection?.write(eventText(entry.data, eventId(this.number, entry.at)))
  }

  /** Lets go of the connection, telling the client to come back. */
  pause (retry: number): void {
    this.#connection?.write(primingText(eventId(this.number, this.#at), retry))
    this.#connection?.end()
  }

  end (): void {
    this.#ended = true
    this.#connection?.end()
  }
}
