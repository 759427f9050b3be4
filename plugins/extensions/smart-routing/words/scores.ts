/** The scores of the tools in one search, by slot. A round scores one concept of the query. */
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
    this.#sums = new Float64Array(size)
    this.#offers = new Float64Array(size)
    this.#covered = new Float64Array(size)
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
    const least = new Float64Array(this.#scored.map((slot) => this.of(slot))).sort().at(-count) ?? 0
    return this.#scored.filter((slot) => this.of(slot) >= least)
  }
}
