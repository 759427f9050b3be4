import type { Counters } from '../store.ts'

/** A counter. `ends`: the time at which it expires, as `performance.now()` measures it. */
interface Counter { count: number, ends: number }

const leftOf = ({ ends }: Counter): number => Math.ceil(ends - performance.now())

/** Counters in memory, which other replicas do not share. Beyond the limit, the oldest counter is removed. */
export class MemoryCounters implements Counters {
  readonly #maxCounters: number
  readonly #counts = new Map<string, Counter>()

  constructor (maxCounters = 100_000) {
    this.#maxCounters = maxCounters
  }

  async reset (key: string): Promise<void> {
    this.#counts.delete(key)
  }

  async take (
    key: string, amount: number, window: number, max = Infinity
  ): Promise<{ isTaken: boolean, count: number, left: number }> {
    const known = this.#find(key)
    const left = known === undefined ? window : leftOf(known)
    const before = known?.count ?? 0
    if (before >= max) return { isTaken: false, count: before, left }
    if (known === undefined) this.#begin(key, amount, window)
    else known.count += amount
    return { isTaken: true, count: before + amount, left }
  }

  async giveBack (key: string, amount: number): Promise<void> {
    const known = this.#find(key)
    if (known) known.count = Math.max(0, known.count - amount)
  }

  async read (key: string): Promise<{ count: number, left: number }> {
    const known = this.#find(key)
    return known === undefined ? { count: 0, left: 0 } : { count: known.count, left: leftOf(known) }
  }

  /** Lists the unexpired counters whose keys begin with a text. `left`: the time until the counter is reset, in ms. */
  list (beginning: string): Array<[key: string, count: number, left: number]> {
    return [...this.#counts.keys()].filter((key) => key.startsWith(beginning)).flatMap((key) => {
      const known = this.#find(key)
      return known === undefined ? [] : [[key, known.count, leftOf(known)]]
    })
  }

  #begin (key: string, count: number, window: number): void {
    // Inserted at the end, so that the first entry is the oldest.
    this.#counts.delete(key)
    this.#counts.set(key, { count, ends: performance.now() + window })
    const oldest = this.#counts.size > this.#maxCounters ? this.#counts.keys().next().value : undefined
    if (oldest !== undefined) this.#counts.delete(oldest)
  }

  #find (key: string): Counter | undefined {
    const known = this.#counts.get(key)
    return known !== undefined && known.ends > performance.now() ? known : undefined
  }
}
