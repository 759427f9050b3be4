import type { MessageRateLimiter, UnsolicitedKind } from '../../../protocol/transports/valve.ts'
import { TokenBucket } from './token-bucket.ts'
import { baseLimits } from './limits.ts'

/** The limits of unsolicited messages; for each member, see `baseLimits.unsolicited`. */
interface UnsolicitedBounds {
  readonly cost: Readonly<Record<UnsolicitedKind, number>>
  readonly charactersPerMs: number
  readonly burst: number
  readonly perSecond: number
}

/** Limits the CPU time that the unsolicited messages of one owner's servers take. A token is 1 ms of CPU time. */
export class UnsolicitedRateLimiter implements MessageRateLimiter {
  readonly #bounds: UnsolicitedBounds
  readonly #bucket: TokenBucket
  readonly #key: string

  constructor (bounds: UnsolicitedBounds = baseLimits.unsolicited, bucket = new TokenBucket(bounds), key = '') {
    this.#bounds = bounds
    this.#bucket = bucket
    this.#key = key
  }

  count (what: UnsolicitedKind, size = 0): void {
    this.#bucket.spend(this.#key, this.#bounds.cost[what] + size / this.#bounds.charactersPerMs)
  }

  /** Returns the time until the next message may be read, in ms. */
  waitTime (): number { return this.#bucket.waitTime(this.#key) }
}

const userBucket = new TokenBucket(baseLimits.unsolicited, { maxKeys: baseLimits.unsolicited.owners })

/**
 * Returns the rate limiter for a server. The servers of one user share a rate; each server of an admin has its own.
 * @param user undefined for a server of an admin
 */
export const rateLimiterForServerOf = (user: string | undefined): UnsolicitedRateLimiter =>
  user === undefined
    ? new UnsolicitedRateLimiter()
    : new UnsolicitedRateLimiter(baseLimits.unsolicited, userBucket, user)
