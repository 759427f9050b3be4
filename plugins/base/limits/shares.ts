import { normalizeIP } from '@fastify/rate-limit'

/** Returns the owner whose share an unauthenticated caller uses: its address (for IPv6, the first 64 bits). */
export const ownerOfAddress = (address: string): string => `address ${normalizeIP(address, 64)}`

/**
 * Thrown if an owner gets no place because it has used up its share (HTTP 429), or because all places are taken (HTTP
 * 503). The message is for the caller.
 */
export class ShareError extends Error {
  override readonly name = 'ShareError'
  /** True: this owner has used up its share. False: all places are taken. */
  readonly isOwnerLimit: boolean

  constructor (message: string, isOwnerLimit: boolean) {
    super(message)
    this.isOwnerLimit = isOwnerLimit
  }
}

/** Releases what was taken. May be called more than once. */
export type Release = () => void

/**
 * A limited number of places for all owners together. An owner may take any free place of the first three quarters.
 * Places of the last quarter are given only to owners that then hold at most a tenth of all places (or one place, if a
 * tenth is less), so one owner cannot exclude the others.
 */
export class Shares {
  readonly #max: number
  readonly #noun: string
  readonly #held = new Map<string, number>()
  #taken = 0

  /** @param noun the word for the places in error messages, in the plural, such as `sessions` */
  constructor (max: number, noun: string) {
    this.#max = max
    this.#noun = noun
  }

  get taken (): number { return this.#taken }

  /** The number of places that one owner holds. */
  heldBy (owner: string): number { return this.#held.get(owner) ?? 0 }

  /**
   * Returns the limit that more places for an owner would exceed; undefined if there is none.
   * @param others the number of taken places that do not count against any share
   */
  exceededLimit (owner: string, places: number, others = 0): 'share' | 'all' | undefined {
    const taken = this.#taken + others + places
    if (taken > this.#max) return 'all'
    return taken > this.#max * 3 / 4 && this.heldBy(owner) + places > Math.max(1, this.#max / 10) ? 'share' : undefined
  }

  /** Takes places for an owner. @returns a function that releases them @throws ShareError */
  take (owner: string, places = 1): Release {
    this.add(owner, places)
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      this.remove(owner, places)
    }
  }

  /** Takes places; `remove` releases them. @param others as in `exceededLimit` @throws ShareError */
  add (owner: string, places: number, others = 0): void {
    const bound = this.exceededLimit(owner, places, others)
    if (bound === 'all') {
      throw new ShareError(`The gateway has reached its limit of ${this.#noun}; try again later`, false)
    }
    if (bound === 'share') {
      throw new ShareError(
        `You have reached your share of ${this.#noun} while the gateway is busy; end some, or try again later`, true
      )
    }
    this.#change(owner, places)
  }

  /** Like `add`, but returns false instead of throwing. */
  tryAdd (owner: string, places: number): boolean {
    if (this.exceededLimit(owner, places) !== undefined) return false
    this.#change(owner, places)
    return true
  }

  /** Releases places. A negative number takes places, even beyond the limits. */
  remove (owner: string, places: number): void { this.#change(owner, -places) }

  #change (owner: string, places: number): void {
    this.#taken += places
    const held = this.heldBy(owner) + places
    if (held > 0) this.#held.set(owner, held)
    else this.#held.delete(owner)
  }
}
