import type { Counters } from './store.ts'

/** Counts of this process alone. Bounded: the oldest goes first. */
export class MemoryCounters implements Counters {
  readonly #most: number
  readonly #counts = new Map<string, { count: number, ends: number }>()

  /** @param most how many keys are remembered */
  constructor (most = 100_000) {
    this.#most = most
  }

  async hit (key: string, window: number): Promise<{ count: number, left: number }> {
    const now = performance.now()
    const known = this.#counts.get(key)
    if (known !== undefined && known.ends > now) return { count: ++known.count, left: Math.ceil(known.ends - now) }
    // Behind all others, so that the first one is the one that began first.
    this.#counts.delete(key)
    this.#counts.set(key, { count: 1, ends: now + window })
    const oldest = this.#counts.size > this.#most ? this.#counts.keys().next().value : undefined
    if (oldest !== undefined) this.#counts.delete(oldest)
    return { count: 1, left: window }
  }

  async reset (key: string): Promise<void> {
    this.#counts.delete(key)
  }
}
