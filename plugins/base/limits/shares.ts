/**
 * Thrown when there is no place left: for one owner, who holds his share already (HTTP 429), or for everybody (HTTP 503). The message
 * is a sentence for the caller.
 */
export class ShareError extends Error {
  override readonly name = 'ShareError'
  /** True: this owner holds his share. False: all places are taken. */
  readonly isOwners: boolean

  constructor (message: string, isOwners: boolean) {
    super(message)
    this.isOwners = isOwners
  }
}

/** Gives back what was taken. May be called more than once. */
export type Release = () => void

/**
 * Places of one kind, with a bound for all and a share for each owner (DECISIONS §15): an owner may take what is free, but the last
 * quarter is for owners that hold less than a tenth of all places; of less than ten places, for those that hold none. So one owner cannot
 * shut out those that hold little.
 */
export class Shares {
  readonly #max: number
  readonly #noun: string
  readonly #held = new Map<string, number>()
  #taken = 0

  /**
   * @param max places for all owners together
   * @param noun of the places in the plural, for errors: `sessions`
   */
  constructor (max: number, noun: string) {
    this.#max = max
    this.#noun = noun
  }

  /** How many places are taken. */
  get taken (): number { return this.#taken }

  /** How many places one owner holds. */
  heldBy (owner: string): number { return this.#held.get(owner) ?? 0 }

  /** Takes places for an owner. @param others places that are taken in nobody's name @throws ShareError */
  take (owner: string, places = 1, others = 0): Release {
    this.add(owner, places, others)
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      this.remove(owner, places)
    }
  }

  /** Takes places, which `remove` gives back. @throws ShareError */
  add (owner: string, places: number, others = 0): void {
    const held = this.heldBy(owner)
    const taken = this.#taken + others + places
    if (taken > this.#max) throw new ShareError(`The gateway has as many ${this.#noun} as it can hold; try again later`, false)
    if (taken > this.#max * 3 / 4 && held + places > Math.max(1, this.#max / 10)) {
      throw new ShareError(`You hold as many ${this.#noun} as one caller may while the gateway is busy; end some, or try again later`, true)
    }
    this.#held.set(owner, held + places)
    this.#taken += places
  }

  /** Gives back places that `add` took. */
  remove (owner: string, places: number): void {
    this.#taken -= places
    const left = this.heldBy(owner) - places
    if (left > 0) this.#held.set(owner, left)
    else this.#held.delete(owner)
  }
}
