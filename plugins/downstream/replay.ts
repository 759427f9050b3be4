import { limits } from '../limits/index.ts'

interface Entry { stream: number, at: number, data: string }

/** The last events of one session, for clients that resume by `Last-Event-ID`. Bounded in number and size; the oldest go first. */
export class Replay {
  #entries: Entry[] = []
  #size = 0

  add (stream: number, at: number, data: string): void {
    this.#entries.push({ stream, at, data })
    this.#size += data.length
    // The newest stays, however large: it may be the answer that its client comes back for.
    while (this.#entries.length > 1 && (this.#entries.length > limits.replayEvents || this.#size > limits.replaySize)) this.#size -= this.#entries.shift()?.data.length ?? 0
  }

  /** What came on one stream after one event, oldest first. */
  after (stream: number, at: number): Array<{ at: number, data: string }> {
    return this.#entries.filter((entry) => entry.stream === stream && entry.at > at)
  }
}

/** Event ids tell the stream and the place in it. */
export const eventId = (stream: number, at: number): string => `${stream}-${at}`

export function parseEventId (id: string): { stream: number, at: number } | undefined {
  const match = /^(\d{1,10})-(\d{1,10})$/.exec(id)
  return match ? { stream: Number(match[1]), at: Number(match[2]) } : undefined
}
