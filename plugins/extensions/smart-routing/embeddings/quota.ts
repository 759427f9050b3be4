import { TokenBucket, type Rate } from '../../../base/limits/index.ts'

/** Max number of texts per `quotaPeriod` (in ms): for one owner, and for all owners together. */
interface QuotaBounds { readonly textsPerOwner: number, readonly textsInTotal: number, readonly quotaPeriod: number }

/** Limits the number of embedded texts, since embedding costs money and a server can change its tools at any time. */
export class EmbeddingQuota {
  readonly #ownerBuckets: TokenBucket
  readonly #totalBucket: TokenBucket

  /** @param now a clock, in ms */
  constructor ({ textsPerOwner: perOwner, textsInTotal: all, quotaPeriod: window }: QuotaBounds, now?: () => number) {
    const rateOf = (burst: number): Rate => ({ burst, perSecond: burst / window * 1_000 })
    this.#ownerBuckets = new TokenBucket(rateOf(perOwner), { now })
    this.#totalBucket = new TokenBucket(rateOf(all), { maxKeys: 1, now })
  }

  /**
   * Takes one text from the total quota, and from the owner's quota.
   * @param owner the owner of the server; undefined for an admin, who has no quota besides the total one
   * @returns false if a quota is exhausted
   */
  take (owner: string | undefined): boolean {
    if (owner !== undefined && this.#ownerBuckets.waitTime(owner) > 0) return false
    if (!this.#totalBucket.take('')) return false
    if (owner !== undefined) this.#ownerBuckets.spend(owner, 1)
    return true
  }

  /** Gives a text back to the quotas after its embedding has failed. */
  refund (owner: string | undefined): void {
    this.#totalBucket.spend('', -1)
    if (owner !== undefined) this.#ownerBuckets.spend(owner, -1)
  }
}
