import { limits } from '../../limits/index.ts'
import { MessageBuffer } from './message-buffer.ts'

interface Entry { readonly stream: number, readonly at: number, readonly data: string, readonly time: number }

/**
 * The last events of one session, for clients that resume by `Last-Event-ID`. The newest stays, however large: it may be the answer that
 * its client comes back for.
 */
export class Replay {
  readonly #shelf = new MessageBuffer<Entry>(limits.replayEvents, limits.replaySize)

  add (stream: number, at: number, data: string): void {
    this.#shelf.add({ stream, at, data, time: Date.now() })
  }

  /** What came on one stream after one event, oldest first. */
  after (stream: number, at: number): Array<{ at: number, data: string }> {
    return [...this.#shelf.entries].filter((entry) => entry.stream === stream && entry.at > at)
  }

  /** Forgets what is too old: whoever wanted it would have come. */
  expire (): void {
    for (const { time } of this.#shelf.entries) {
      if (Date.now() - time < limits.replayTime) return
      this.#shelf.dropOldest()
    }
  }

  /** Nobody will come back. */
  clear (): void {
    this.#shelf.clear()
  }
}

/** Event ids tell the stream and the place in it. */
export const eventId = (stream: number, at: number): string => `${stream}-${at}`

export function parseEventId (id: string): { stream: number, at: number } | undefined {
  const match = /^(\d{1,10})-(\d{1,10})$/.exec(id)
  return match ? { stream: Number(match[1]), at: Number(match[2]) } : undefined
}
