import { limits } from '../../limits/index.ts'

/** What an entry costs beside its text, about, in characters. */
const overhead = 128

/** Whose each entry is, of all shelves, oldest first. */
const shelves = new Map<{ readonly data: string }, { dropOldest: () => void }>()
let total = 0

/**
 * Messages that are kept for one client to come back for: bounded in number and size for itself, and in size for all clients
 * together. The oldest go first.
 */
export class MessageBuffer<Entry extends { readonly data: string }> {
  readonly #count: number
  readonly #most: number
  readonly #entries = new Set<Entry>()
  #size = 0

  /** @param count how many entries @param most how many characters in all; the newest stays, however large */
  constructor (count: number, most: number) {
    this.#count = count
    this.#most = most
  }

  get entries (): Iterable<Entry> { return this.#entries }

  add (entry: Entry): void {
    this.#entries.add(entry)
    this.#size += entry.data.length
    shelves.set(entry, this)
    total += entry.data.length + overhead
    while (this.#entries.size > 1 && (this.#entries.size > this.#count || this.#size > this.#most)) this.dropOldest()
    for (const shelf of shelves.values()) {
      if (total <= limits.keptSize) break
      shelf.dropOldest()
    }
  }

  dropOldest (): void {
    const oldest = this.#entries.values().next().value
    if (oldest !== undefined) this.#drop(oldest)
  }

  /** Takes all off, oldest first. */
  clear (): Entry[] {
    const entries = [...this.#entries]
    for (const entry of entries) this.#drop(entry)
    return entries
  }

  #drop (entry: Entry): void {
    this.#entries.delete(entry)
    this.#size -= entry.data.length
    shelves.delete(entry)
    total -= entry.data.length + overhead
  }
}
