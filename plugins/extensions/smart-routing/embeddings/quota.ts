import { TokenBucket, type Rate } from '../../../base/limits/index.ts'

/** Max number of texts per `window` (in ms): for one owner, and for all owners together. */
interface QuotaBounds { readonly perOwner: number, readonly all: number, readonly window: number }

/** Limits the number of embedded texts, since they cost money and a server can change its tools at any time. */
export class Quota {
  readonly #owners: TokenBucket
  readonly #all: TokenBucket

  /** @param now a clock, in ms */
  constructor ({ perOwner, all, window }: QuotaBounds, now?: () => number) {
    const rateOf = (burst: number): Rate => ({ burst, perSecond: burst / window * 1_000 })
    this.#owners = new TokenBucket(rateOf(perOwner), { now })
    this.#all = new TokenBucket(rateOf(all), { maxKeys: 1, now })
  }

  /**
   * @param owner whose quota is used too; undefined: only the total counts
   * @returns false if a quota is exhausted
   */
  take (owner: string | undefined): boolean {
    if (owner !== undefined && this.#owners.waitTime(owner) > 0) return false
    if (!this.#all.take('')) return false
    if (owner !== undefined) this.#owners.spend(owner, 1)
    return true
  }

  /** Refunds a text whose embedding failed. */
  give (owner: string | undefined): void {
    this.#all.spend('', -1)
    if (owner !== undefined) this.#owners.spend(owner, -1)
  }
}
