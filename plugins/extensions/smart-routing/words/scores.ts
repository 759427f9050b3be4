/** Arrays that all searches reuse, one after another, since a search is synchronous. */
const sharedArrays = {
  sums: new Float64Array(1_024),
  offers: new Float64Array(1_024),
  covered: new Float64Array(1_024)
}

/**
 * The scores of the tools in one search, by slot; valid until the next search begins. A round scores one concept of the
 * query.
 */
export class Scores {
  readonly #sums: Float64Array
  readonly #offers: Float64Array
  readonly #covered: Float64Array
  /** The slots with an offer in this round. */
  #offered: number[] = []
  /** The slots with a score. */
  readonly #scored: number[] = []

  /** @param size number of slots */
  constructor (size: number) {
    if (sharedArrays.sums.length < size) {
      sharedArrays.sums = new Float64Array(size * 2)
      sharedArrays.offers = new Float64Array(size * 2)
      sharedArrays.covered = new Float64Array(size * 2)
    }
    this.#sums = sharedArrays.sums.fill(0, 0, size)
    this.#offers = sharedArrays.offers.fill(0, 0, size)
    this.#covered = sharedArrays.covered.fill(0, 0, size)
  }

  /** Offers a score to a slot. Of the offers of a round, only the highest is added to the score. */
  offer (slot: number, amount: number): void {
    const before = this.#offers[slot] ?? 0
    if (before === 0) this.#offered.push(slot)
    if (amount > before) this.#offers[slot] = amount
  }

  /** Ends a round. @param covered the share of the query that this round represents */
  endRound (covered: number): void {
    for (const slot of this.#offered) {
      if (this.#sums[slot] === 0) this.#scored.push(slot)
      this.#sums[slot] = (this.#sums[slot] ?? 0) + (this.#offers[slot] ?? 0)
      this.#covered[slot] = (this.#covered[slot] ?? 0) + covered
      this.#offers[slot] = 0
    }
    this.#offered = []
  }

  /** Multiplies each score by `base` plus the share of the query for which the slot had offers. */
  applyCoverage (base: number): void {
    for (const slot of this.#scored) this.scale(slot, base + (this.#covered[slot] ?? 0))
  }

  scale (slot: number, factor: number): void { this.#sums[slot] = (this.#sums[slot] ?? 0) * factor }

  of (slot: number): number { return this.#sums[slot] ?? 0 }

  /** Returns the `count` slots with the highest scores, unsorted, and all that tie with the lowest of these scores. */
  best (count: number): number[] {
    if (this.#scored.length <= count) return this.#scored
    const least = this.#lowestOfHighest(count)
    return this.#scored.filter((slot) => this.of(slot) >= least)
  }

  /** Returns the lowest of the `count` highest scores, using a min-heap. */
  #lowestOfHighest (count: number): number {
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
