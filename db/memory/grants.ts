import { maxRecords, retention, type Grants, type Taken } from '../ports.ts'

interface Waiting { readonly family: string, readonly value: unknown, readonly expiresAt: number }

/** Grants of this process alone; a restart loses them. When there are too many, the oldest are removed. */
export class MemoryGrants implements Grants {
  readonly #maxGrants: number
  readonly #now: () => number
  readonly #waiting = new Map<string, Waiting>()
  readonly #taken = new Map<string, { readonly family: string, readonly until: number }>()

  /**
   * @param count max grants kept, separately for those that wait and those that were taken
   * @param now the clock, in ms since 1970
   */
  constructor (count: number = maxRecords.grants, now = () => Date.now()) {
    this.#maxGrants = count
    this.#now = now
  }

  async put (hash: string, family: string, value: unknown, expiresAt: number): Promise<void> {
    this.#waiting.set(hash, { family, value: structuredClone(value), expiresAt })
    this.#trim(this.#waiting, ({ expiresAt }) => expiresAt)
  }

  async take (hash: string): Promise<Taken | undefined> {
    const before = this.#taken.get(hash)
    if (before !== undefined) return before.until > this.#now() ? { first: false, family: before.family } : undefined
    const found = this.#waiting.get(hash)
    this.#waiting.delete(hash)
    if (found === undefined || found.expiresAt <= this.#now()) return undefined
    this.#taken.set(hash, { family: found.family, until: this.#now() + retention })
    this.#trim(this.#taken, ({ until }) => until)
    return { first: true, family: found.family, value: found.value }
  }

  /** Removes the first entries, which are the oldest, while there are too many or they have expired. */
  #trim<Entry> (entries: Map<string, Entry>, expiryOf: (entry: Entry) => number): void {
    for (const [hash, entry] of entries) {
      if (entries.size <= this.#maxGrants && expiryOf(entry) > this.#now()) return
      entries.delete(hash)
    }
  }
}
