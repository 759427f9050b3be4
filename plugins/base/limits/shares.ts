import { normalizeIP } from '@fastify/rate-limit'

/** The owner to whom a caller without credentials is counted: its address, or the first 64 bits of an IPv6 address. */
export const ownerAt = (address: string): string => `address ${normalizeIP(address, 64)}`

/**
 * Thrown when no place is left: for one owner, which holds its share already (HTTP 429), or for everybody (HTTP 503).
 * The message is a sentence for the caller.
 */
export class ShareError extends Error {
  override readonly name = 'ShareError'
  /** True: this owner holds its share. False: all places are taken. */
  readonly isOwners: boolean

  constructor (message: string, isOwners: boolean) {
    super(message)
    this.isOwners = isOwners
  }
}

/** Gives back what was taken. May be called more than once. */
export type Release = () => void

/**
 * Places of one kind, with a bound for all owners together. An owner may take what is free, but the last quarter is for
 * owners that hold less than a tenth of all places; of less than ten places, for owners that hold none. So one owner
 * cannot shut out the others.
 */
export class Shares {
  readonly #max: number
  readonly #noun: string
  readonly #held = new Map<string, number>()
  #taken = 0

  /** @param noun of the places in the plural, for errors: `sessions` */
  constructor (max: number, noun: string) {
    this.#max = max
    this.#noun = noun
  }

  /** How many places are taken. */
  get taken (): number { return this.#taken }

  /** How many places one owner holds. */
  heldBy (owner: string): number { return this.#held.get(owner) ?? 0 }

  /** The bound that more places of an owner would exceed. @param others places that are taken in nobody's name */
  boundFor (owner: string, places: number, others = 0): 'share' | 'all' | undefined {
    const taken = this.#taken + others + places
    if (taken > this.#max) return 'all'
    return taken > this.#max * 3 / 4 && this.heldBy(owner) + places > Math.max(1, this.#max / 10) ? 'share' : undefined
  }

  /** Takes places for an owner. @throws ShareError */
  take (owner: string, places = 1): Release {
    this.add(owner, places)
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      this.remove(owner, places)
    }
  }

  /** Takes places, which `remove` gives back. @param others as for `boundFor` @throws ShareError */
  add (owner: string, places: number, others = 0): void {
    const bound = this.boundFor(owner, places, others)
    if (bound === 'all') {
      throw new ShareError(`The gateway has as many ${this.#noun} as it can hold; try again later`, false)
    }
    if (bound === 'share') {
      throw new ShareError(`You hold as many ${this.#noun} as one caller may while the gateway is busy; end some, or ` +
        'try again later', true)
    }
    this.#change(owner, places)
  }

  /** Gives back places that `add` took. */
  remove (owner: string, places: number): void { this.#change(owner, -places) }

  #change (owner: string, places: number): void {
    this.#taken += places
    const held = this.heldBy(owner) + places
    if (held > 0) this.#held.set(owner, held)
    else this.#held.delete(owner)
  }
}
