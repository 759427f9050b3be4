/** Memory that searches share, one at a time. */
const shared = { sums: new Float64Array(1_024), offers: new Float64Array(1_024), covered: new Float64Array(1_024) }

/** The scores of a search, by slot: valid until the next search begins. */
export class Scores {
  readonly #sums: Float64Array
  readonly #offers: Float64Array
  readonly #covered: Float64Array
  /** Slots that were offered something in this turn, and slots with a score. */
  #offered: number[] = []
  readonly #scored: number[] = []

  /** @param size number of slots */
  constructor (size: number) {
    if (shared.sums.length < size) {
      shared.sums = new Float64Array(size * 2)
      shared.offers = new Float64Array(size * 2)
      shared.covered = new Float64Array(size * 2)
    }
    this.#sums = shared.sums.fill(0, 0, size)
    this.#offers = shared.offers.fill(0, 0, size)
    this.#covered = shared.covered.fill(0, 0, size)
  }

  /** Of all that is offered to a slot in one turn, the most counts. */
  offer (slot: number, amount: number): void {
    const before = this.#offers[slot] ?? 0
    if (before === 0) this.#offered.push(slot)
    if (amount > before) this.#offers[slot] = amount
  }

  /** Ends a turn. @param covered what part of the question it was */
  take (covered: number): void {
    for (const slot of this.#offered) {
      if (this.#sums[slot] === 0) this.#scored.push(slot)
      this.#sums[slot] = (this.#sums[slot] ?? 0) + (this.#offers[slot] ?? 0)
      this.#covered[slot] = (this.#covered[slot] ?? 0) + covered
      this.#offers[slot] = 0
    }
    this.#offered = []
  }

  /** Each score times `base` and what is covered. */
  finish (base: number): void {
    for (const slot of this.#scored) this.scale(slot, base + (this.#covered[slot] ?? 0))
  }

  scale (slot: number, factor: number): void { this.#sums[slot] = (this.#sums[slot] ?? 0) * factor }

  of (slot: number): number { return this.#sums[slot] ?? 0 }

  /** So many slots with the highest scores, in no order; all of those that are equal to the last of them. */
  best (count: number): number[] {
    if (this.#scored.length <= count) return this.#scored
    const least = this.#leastOf(count)
    return this.#scored.filter((slot) => this.of(slot) >= least)
  }

  /** The lowest of the `count` highest scores: the root of a heap that holds these. */
  #leastOf (count: number): number {
    const heap = new Float64Array(count)
    for (const slot of this.#scored) {
      const score = this.of(slot)
      if (score <= (heap[0] ?? 0)) continue
      let at = 0
      for (let child = 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && (heap[child + 1] ?? 0) < (heap[child] ?? 0)) child++
        if ((heap[child] ?? 0) >= score) break
        heap[at] = heap[child] ?? 0
        at = child
      }
      heap[at] = score
    }
    return heap[0] ?? 0
  }
}
