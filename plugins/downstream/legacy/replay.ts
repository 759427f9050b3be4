import { copyOf } from '../../../protocol/text.ts'
import { limits } from '../../base/limits/index.ts'
import { MessageBuffer } from './message-buffer.ts'

interface Entry { readonly stream: number, readonly at: number, readonly data: string, readonly time: number }

/**
 * The last events of one session, for clients that resume a stream by `Last-Event-ID`. The newest is kept, however large: it may be the
 * answer that the client resumes for.
 */
export class Replay {
  readonly #buffer: MessageBuffer<Entry>

  /** @param owner the session's */
  constructor (owner: string) {
    this.#buffer = new MessageBuffer(owner, limits.replayEvents, limits.replaySize)
  }

  add (stream: number, at: number, data: string): void {
    this.#buffer.add({ stream, at, data: copyOf(data), time: Date.now() })
  }

  /** The events on a stream after the one with number `at`, oldest first. */
  after (stream: number, at: number): Array<{ at: number, data: string }> {
    return [...this.#buffer.entries].filter((entry) => entry.stream === stream && entry.at > at)
  }

  /** Drops events that are older than `limits.replayTime`. */
  expire (): void {
    for (const { time } of this.#buffer.entries) {
      if (Date.now() - time < limits.replayTime) return
      this.#buffer.dropOldest()
    }
  }

  /** Drops all events. */
  clear (): void {
    this.#buffer.clear()
  }
}

/** The event id, made of the numbers of the stream and of the event on it. */
export const eventId = (stream: number, at: number): string => `${stream}-${at}`

export function parseEventId (id: string): { stream: number, at: number } | undefined {
  const match = /^(\d{1,10})-(\d{1,10})$/.exec(id)
  return match ? { stream: Number(match[1]), at: Number(match[2]) } : undefined
}
