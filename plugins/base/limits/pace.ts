import { BoundedMap } from './bounded-map.ts'
import { ShareError } from './shares.ts'

interface PaceBounds {
  /** Max amount at once, and what of it comes back per second. */
  readonly burst: number
  readonly perSecond: number
  /** Max owners whose amounts are counted; beyond: those that have all of it again are forgotten. */
  readonly owners: number
}

/** The amount that one owner has left at a time. */
interface Account { readonly left: number, readonly updated: number }

/** A rate limit for each owner. */
export class Pace {
  readonly #bounds: PaceBounds
  readonly #sentence: string
  readonly #now: () => number
  readonly #accounts: BoundedMap<string, Account>

  /** @param sentence for an owner without allowance @param now a clock, in ms */
  constructor (bounds: PaceBounds, sentence: string, now = () => performance.now()) {
    this.#bounds = bounds
    this.#sentence = sentence
    this.#now = now
    this.#accounts = new BoundedMap(bounds.owners, { isEvictable: (_owner, account) => this.#leftOf(account) >= bounds.burst })
  }

  /**
   * Counts an amount. It may be more than is left: then the owner waits longer.
   * @throws ShareError when nothing is left
   */
  take (owner: string, amount: number): void {
    const account = this.#accounts.get(owner)
    const left = account ? this.#leftOf(account) : this.#bounds.burst
    if (left <= 0) throw new ShareError(this.#sentence, true)
    this.#accounts.setNewest(owner, { left: left - amount, updated: this.#now() })
  }

  #leftOf ({ left, updated }: Account): number {
    return Math.min(this.#bounds.burst, left + (this.#now() - updated) / 1_000 * this.#bounds.perSecond)
  }
}
