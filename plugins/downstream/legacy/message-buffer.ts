import { memoryOf } from '../../../protocol/text.ts'
import { limits, OwnedMap } from '../../base/limits/index.ts'

/** Estimated memory of an entry beside its text, in bytes. */
const overhead = 128

interface Message { readonly data: string }

/**
 * The buffer of each entry in any buffer. Beyond the bound the oldest entry of the owner that holds most is dropped. It is the oldest of
 * its buffer, too, since a buffer has one owner.
 */
const kept = new OwnedMap<{ dropOldest: () => void }, Message>(limits.keptSize, {
  sizeOf: ({ data }) => memoryOf(data) + overhead,
  onEvict: (_entry, buffer) => { buffer.dropOldest() }
})

/**
 * Messages that are kept until their client fetches them. They are bounded in number and size per buffer, beyond which the oldest are
 * dropped, and in size over all buffers, with which the owner that holds most loses its oldest.
 */
export class MessageBuffer<Entry extends Message> {
  readonly #owner: string
  readonly #maxEntries: number
  readonly #maxSize: number
  readonly #entries = new Set<Entry>()
  #size = 0

  /**
   * @param owner in whose name messages are kept (`ownerOf`)
   * @param maxEntries max number of entries
   * @param maxSize max memory of all texts, in bytes; the newest entry is kept, however large
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
    while (this.#entries.size > 1 && (this.#entries.size > this.#maxEntries || this.#size > this.#maxSize)) this.dropOldest()
    kept.set(this.#owner, entry, this)
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
    this.#size -= memoryOf(entry.data)
    kept.delete(this.#owner, entry)
  }
}
