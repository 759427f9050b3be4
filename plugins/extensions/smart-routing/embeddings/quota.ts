import { TokenBucket, type Rate } from '../../../base/limits/index.ts'

/** Max texts per `window`, in ms: of one owner, and of all. */
interface QuotaBounds { readonly perOwner: number, readonly all: number, readonly window: number }

/** Counts the texts that are embedded: they cost money, and a server may list other tools at any time. */
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
   * @param owner an owner with its own bound; undefined: only the bound for all counts
   * @returns false: a bound is reached
   */
  take (owner: string | undefined): boolean {
    if (owner !== undefined && this.#owners.waitTime(owner) > 0) return false
    if (!this.#all.take('')) return false
    if (owner !== undefined) this.#owners.spend(owner, 1)
    return true
  }

  /** Gives a text back that was not embedded. */
  give (owner: string | undefined): void {
    this.#all.spend('', -1)
    if (owner !== undefined) this.#owners.spend(owner, -1)
  }
}
