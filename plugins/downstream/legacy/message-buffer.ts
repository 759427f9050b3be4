import { limits } from '../../limits/index.ts'

/** Estimated cost of an entry beside its text, in characters. */
const overhead = 128

/** The buffer of each entry in any buffer, oldest entry first. */
const buffers = new Map<{ readonly data: string }, { dropOldest: () => void }>()
/** Size of all entries, in characters. */
let total = 0

/**
 * Messages that are kept until their client fetches them. They are bounded in number and size per buffer, and in size over all buffers;
 * beyond the bounds the oldest are dropped.
 */
export class MessageBuffer<Entry extends { readonly data: string }> {
  readonly #maxEntries: number
  readonly #maxSize: number
  readonly #entries = new Set<Entry>()
  #size = 0

  /** @param maxEntries max number of entries @param maxSize max characters in all; the newest entry is kept, however large */
  constructor (maxEntries: number, maxSize: number) {
    this.#maxEntries = maxEntries
    this.#maxSize = maxSize
  }

  get entries (): Iterable<Entry> { return this.#entries }

  add (entry: Entry): void {
    this.#entries.add(entry)
    this.#size += entry.data.length
    buffers.set(entry, this)
    total += entry.data.length + overhead
    while (this.#entries.size > 1 && (this.#entries.size > this.#maxEntries || this.#size > this.#maxSize)) this.dropOldest()
    for (const buffer of buffers.values()) {
      if (total <= limits.keptSize) break
      buffer.dropOldest()
    }
  }

  dropOldest (): void {
    const oldest = this.#entries.values().next().value
    if (oldest !== undefined) this.#drop(oldest)
  }

  /** Removes all entries. @returns them, oldest first */
  clear (): Entry[] {
    const entries = [...this.#entries]
    for (const entry of entries) this.#drop(entry)
    return entries
  }

  #drop (entry: Entry): void {
    this.#entries.delete(entry)
    this.#size -= entry.data.length
    buffers.delete(entry)
    total -= entry.data.length + overhead
  }
}
