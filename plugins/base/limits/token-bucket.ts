import { BoundedMap } from './bounded-map.ts'

export interface Rate {
  /** Max tokens at once. */
  readonly burst: number
  /** Tokens added per second. */
  readonly perSecond: number
}

interface TokenBucketOptions {
  /** Max keys with a bucket; beyond that, the least recently used one starts again with a full bucket. */
  readonly maxKeys?: number
  /** A clock, in ms. */
  readonly now?: () => number
}

interface Bucket { readonly left: number, readonly updated: number }

/** Tolerance for rounding errors in times, in ms. */
const roundingTolerance = 1e-6

/**
 * A rate limiter with one token bucket per key. Spending is allowed while at least one token is left, and may exceed
 * what is left: the key then waits until the debt is paid.
 */
export class TokenBucket {
  readonly #rate: Rate
  readonly #now: () => number
  readonly #buckets: BoundedMap<string, Bucket>

  /** @param rate read at each use */
  constructor (rate: Rate, { maxKeys = 10_000, now = () => performance.now() }: TokenBucketOptions = {}) {
    this.#rate = rate
    this.#now = now
    this.#buckets = new BoundedMap(maxKeys)
  }

  /** Spends tokens. @returns false if none is left; then nothing is spent */
  take (key: string, amount = 1): boolean {
    if (this.waitTime(key) > 0) return false
    this.spend(key, amount)
    return true
  }

  /** Spends tokens, whether or not any are left. A negative amount returns tokens. */
  spend (key: string, amount: number): void {
    this.#buckets.setNewest(key, { left: this.#leftOf(key) - amount, updated: this.#now() })
  }

  /** The time until `amount` tokens are available, in ms; 0: now. */
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
 * Limits the log lines of one source. When the bucket is empty, all lines are omitted until it is full again, so that
 * lines of one message stay together; then the number of omitted lines is reported.
 */
export class LogLineLimiter {
  readonly #bucket: TokenBucket
  readonly #rate: Rate
  readonly #report: (omitted: number) => void
  #isSilent = false
  #omitted = 0

  /** @param now a clock, in ms */
  constructor (rate: Rate, report: (omitted: number) => void, now?: () => number) {
    this.#bucket = new TokenBucket(rate, { maxKeys: 1, now })
    this.#rate = rate
    this.#report = report
  }

  /** Whether a line may be logged. @param cost in tokens */
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
