import { most, remembered, type Grants, type Taken } from '../ports.ts'

interface Waiting { readonly family: string, readonly value: unknown, readonly expiresAt: number }

/** Grants of this process alone: a restart ends what was not taken yet. Bounded: the oldest go first. */
export class MemoryGrants implements Grants {
  readonly #most: number
  readonly #waiting = new Map<string, Waiting>()
  readonly #taken = new Map<string, { readonly family: string, readonly until: number }>()

  /** @param count how many are kept that were not taken, and how many that were */
  constructor (count: number = most.grants) {
    this.#most = count
  }

  async put (hash: string, family: string, value: unknown, expiresAt: number): Promise<void> {
    this.#waiting.set(hash, { family, value: structuredClone(value), expiresAt })
    trim(this.#waiting, this.#most, ({ expiresAt }) => expiresAt)
  }

  async take (hash: string): Promise<Taken | undefined> {
    const before = this.#taken.get(hash)
    if (before !== undefined) return before.until > Date.now() ? { first: false, family: before.family } : undefined
    const found = this.#waiting.get(hash)
    this.#waiting.delete(hash)
    if (found === undefined || found.expiresAt <= Date.now()) return undefined
    this.#taken.set(hash, { family: found.family, until: Date.now() + remembered })
    trim(this.#taken, this.#most, ({ until }) => until)
    return { first: true, family: found.family, value: found.value }
  }
}

/** Lets go of the first entries, which are the oldest, while they are too many or over. */
function trim<Entry> (entries: Map<string, Entry>, count: number, endOf: (entry: Entry) => number): void {
  for (const [hash, entry] of entries) {
    if (entries.size <= count && endOf(entry) > Date.now()) return
    entries.delete(hash)
  }
}
