import type { MessagePace, Unsolicited } from '../../../protocol/transports/valve.ts'
import { limits } from './limits.ts'
import { TokenBucket } from './token-bucket.ts'

/** As `limits.unsolicited` has them. */
interface UnsolicitedBounds {
  readonly cost: Readonly<Record<Unsolicited, number>>
  readonly charactersPerMs: number
  readonly burst: number
  readonly perSecond: number
}

/** How much of the unsolicited messages of one owner's servers is processed, in ms of CPU time. */
export class UnsolicitedPace implements MessagePace {
  readonly #bounds: UnsolicitedBounds
  readonly #bucket: TokenBucket
  readonly #key: string

  constructor (bounds: UnsolicitedBounds = limits.unsolicited, bucket = new TokenBucket(bounds), key = '') {
    this.#bounds = bounds
    this.#bucket = bucket
    this.#key = key
  }

  count (what: Unsolicited, size = 0): void {
    this.#bucket.spend(this.#key, this.#bounds.cost[what] + size / this.#bounds.charactersPerMs)
  }

  /** @returns ms until the next message may be read */
  wait (): number { return this.#bucket.wait(this.#key) }
}

const ofUsers = new TokenBucket(limits.unsolicited, { maxKeys: limits.unsolicited.owners })

/** The pace of a server: one for all servers of a user, and one for each server of an admin. */
export const paceOf = (user: string | undefined): UnsolicitedPace =>
  user === undefined ? new UnsolicitedPace() : new UnsolicitedPace(limits.unsolicited, ofUsers, user)
