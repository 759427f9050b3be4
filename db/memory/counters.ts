import type { Counters } from '../store.ts'

/** Counters of this process alone. Beyond the limit, the oldest one is removed. */
export class MemoryCounters implements Counters {
  readonly #maxCounters: number
  readonly #counts = new Map<string, { count: number, ends: number }>()

  constructor (maxCounters = 100_000) {
    this.#maxCounters = maxCounters
  }

  async hit (key: string, window: number): Promise<{ count: number, left: number }> {
    const now = performance.now()
    const known = this.#counts.get(key)
    if (known !== undefined && known.ends > now) return { count: ++known.count, left: Math.ceil(known.ends - now) }
    // Inserted at the end, so that the first entry is the oldest.
    this.#counts.delete(key)
    this.#counts.set(key, { count: 1, ends: now + window })
    const oldest = this.#counts.size > this.#maxCounters ? this.#counts.keys().next().value : undefined
    if (oldest !== undefined) this.#counts.delete(oldest)
    return { count: 1, left: window }
  }

  async reset (key: string): Promise<void> {
    this.#counts.delete(key)
  }
}
