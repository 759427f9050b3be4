import { BoundedMap } from './bounded-map.ts'

export interface Rate {
  /** Max tokens in a bucket. */
  readonly burst: number
  /** Tokens added per second. */
  readonly perSecond: number
}

interface TokenBucketOptions {
  /** Max keys with a bucket; beyond that, the least recently used one starts again with a full bucket. */
  readonly maxKeys?: number
  /** Returns the current time, in ms. Default: a monotonic clock. */
  readonly now?: () => number
}

interface Bucket { readonly left: number, readonly updated: number }

/** Tolerance for rounding errors in times, in ms. */
const roundingTolerance = 1e-6

/**
 * A rate limiter with one token bucket per key. `take` succeeds while at least one token is left, even if it spends
 * more than are left; the key must then wait until the debt is paid.
 */
export class TokenBucket {
  readonly #rate: Rate
  readonly #now: () => number
  readonly #buckets: BoundedMap<string, Bucket>

  /** @param rate its members are read at each use, so they may change */
  constructor (rate: Rate, { maxKeys = 10_000, now = () => performance.now() }: TokenBucketOptions = {}) {
    this.#rate = rate
    this.#now = now
    this.#buckets = new BoundedMap(maxKeys)
  }

  /** Spends tokens if at least one is left. @returns whether they were spent */
  take (key: string, amount = 1): boolean {
    if (this.waitTime(key) > 0) return false
    this.spend(key, amount)
    return true
  }

  /** Spends tokens, whether or not any are left. A negative amount returns tokens. */
  spend (key: string, amount: number): void {
    this.#buckets.setNewest(key, { left: this.#leftOf(key) - amount, updated: this.#now() })
  }

  /** Returns the time until `amount` tokens are available, in ms; 0 if they are now. */
  waitTime (key: string, amount = 1): number {
    const missing = amount - this.#leftOf(key)
    return Math.max(0, Math.ceil(missing / this.#rate.perSecond * 1_000 - roundingTolerance))
  }

  #leftOf (key: string): number {
    const { burst, perSecond } = this.#rate
    const bucket = this.#buckets.get(key)
    return bucket ? Math.min(burst, bucket.left + (this.#now() - bucket.updated) / 1_000 * perSecond) : burst
  }
}

/**
 * Limits the log lines of one source. When the bucket is empty, all lines are omitted until it is full again, so that a
 * message of several lines is not torn apart; then the number of omitted lines is reported.
 */
export class LogLineLimiter {
  readonly #bucket: TokenBucket
  readonly #rate: Rate
  readonly #report: (omitted: number) => void
  #isSilent = false
  #omitted = 0

  /** @param now returns the current time, in ms */
  constructor (rate: Rate, report: (omitted: number) => void, now?: () => number) {
    this.#bucket = new TokenBucket(rate, { maxKeys: 1, now })
    this.#rate = rate
    this.#report = report
  }

  /** Counts a line. @param cost the number of tokens that the line costs @returns whether the line may be logged */
  admit (cost = 1): boolean {
    if (this.#isSilent && this.#bucket.waitTime('', this.#rate.burst) === 0) {
      if (this.#omitted > 0) this.#report(this.#omitted)
      this.#isSilent = false
      this.#omitted = 0
    }
    this.#isSilent ||= !this.#bucket.take('', cost)
    if (this.#isSilent) this.#omitted++
    return !this.#isSilent
  }
}
