import { memoryOf, detachedCopy } from '../../../protocol/text.ts'
import { OwnedMap } from '../../base/limits/index.ts'
import { downstreamLimits } from '../limits.ts'

/** Estimated memory of a message in addition to its text, in bytes. */
const overhead = 128

/** A message in a buffer. `data`: the text of the message. */
interface KeptMessage { readonly data: string }

/**
 * The messages of all buffers. Beyond the limit, the owner whose messages take the most memory loses its oldest
 * message. Since each buffer has one owner, this is also the oldest message of its buffer.
 */
const allEntries = new OwnedMap<{ dropOldest: () => void }, KeptMessage>(downstreamLimits.keptSize, {
  sizeOf: ({ data }) => memoryOf(data) + overhead,
  onEvict: (_entry, buffer) => { buffer.dropOldest() }
})

/**
 * A buffer of messages for one client. It is limited in number and size, and drops its oldest messages. All buffers
 * together are limited in size.
 */
export class MessageBuffer<Entry extends KeptMessage> {
  readonly #owner: string
  readonly #maxEntries: number
  readonly #maxSize: number
  readonly #entries = new Set<Entry>()
  #size = 0

  /**
   * @param owner the owner to whom the memory of the messages is charged (`chargedOwnerOf`)
   * @param maxSize max memory of all texts, in bytes; the newest message is kept at any size
   */
  constructor (owner: string, maxEntries: number, maxSize: number) {
    this.#owner = owner
    this.#maxEntries = maxEntries
    this.#maxSize = maxSize
  }

  get entries (): Iterable<Entry> { return this.#entries }

  add (entry: Entry): void {
    this.#entries.add(entry)
    this.#size += memoryOf(entry.data)
    while (this.#entries.size > 1 &&
        (this.#entries.size > this.#maxEntries || this.#size > this.#maxSize)) this.dropOldest()
    allEntries.set(this.#owner, entry, this)
  }

  dropOldest (): void {
    const oldest = this.#entries.values().next().value
    if (oldest !== undefined) this.#drop(oldest)
  }

  /** Removes all entries, and returns them, oldest first. */
  clear (): Entry[] {
    const entries = [...this.#entries]
    for (const entry of entries) this.#drop(entry)
    return entries
  }

  #drop (entry: Entry): void {
    this.#entries.delete(entry)
    this.#size -= memoryOf(entry.data)
    allEntries.delete(this.#owner, entry)
  }
}

/** An event on a stream. `stream`: the number of the stream; `number`: the event's own; `time`: in ms since 1970. */
interface SentEvent { readonly stream: number, readonly number: number, readonly data: string, readonly time: number }

/**
 * The last events of one session, for clients that resume a stream with `Last-Event-ID`. The newest event is kept at
 * any size, since it may be the answer that the client waits for.
 */
export class ReplayBuffer {
  readonly #buffer: MessageBuffer<SentEvent>

  constructor (owner: string) {
    this.#buffer = new MessageBuffer(owner, downstreamLimits.replayEvents, downstreamLimits.replaySize)
  }

  add (stream: number, number: number, data: string): void {
    this.#buffer.add({ stream, number, data: detachedCopy(data), time: Date.now() })
  }

  /** Returns the kept events on a stream after the event with this number, oldest first. */
  after (stream: number, number: number): Array<{ number: number, data: string }> {
    return [...this.#buffer.entries].filter((event) => event.stream === stream && event.number > number)
  }

  /** Drops events that are older than `downstreamLimits.replayTime`. */
  expire (): void {
    for (const { time } of this.#buffer.entries) {
      if (Date.now() - time < downstreamLimits.replayTime) return
      this.#buffer.dropOldest()
    }
  }

  /** Drops all events. */
  clear (): void {
    this.#buffer.clear()
  }
}

/** Returns the id of an event: the number of its stream, and the event's number on that stream. */
export const eventId = (stream: number, number: number): string => `${stream}-${number}`

/** Parses an id that `eventId` has made; returns undefined for any other text. */
export function parseEventId (id: string): { stream: number, number: number } | undefined {
  const match = /^(\d{1,10})-(\d{1,10})$/.exec(id)
  return match ? { stream: Number(match[1]), number: Number(match[2]) } : undefined
}
