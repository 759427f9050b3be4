import { maxRecords, type StateUse, type UsedStates } from '../ports.ts'

/** The states that were used in this process; a restart forgets them. When there are too many, the oldest are forgotten. */
export class MemoryUsedStates implements UsedStates {
  readonly outlivesProcess = false
  readonly #count: number
  readonly #now: () => number
  readonly #uses = new Map<string, { readonly answers: string, readonly at: number }>()

  /** @param now the clock, in ms since 1970 */
  constructor (count: number = maxRecords.usedStates, now = () => Date.now()) {
    this.#count = count
    this.#now = now
  }

  async use (hash: string, answers: string): Promise<StateUse> {
    const first = this.#uses.get(hash)
    if (first !== undefined) return { answers: first.answers, age: this.#now() - first.at }
    this.#uses.set(hash, { answers, at: this.#now() })
    if (this.#uses.size > this.#count) {
      const [oldest = ''] = this.#uses.keys()
      this.#uses.delete(oldest)
    }
    return { answers, age: 0 }
  }
}
