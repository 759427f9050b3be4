import type { MessagePace, Unsolicited } from '../../../protocol/transports/valve.ts'
import { BoundedMap } from './bounded-map.ts'
import { limits } from './limits.ts'

/** As `limits.unsolicited` has them. */
interface UnsolicitedBounds {
  readonly cost: Readonly<Record<Unsolicited, number>>
  readonly charactersPerMs: number
  readonly burst: number
  readonly perSecond: number
}

/**
 * Bounds the unsolicited messages of one owner's servers, by the CPU time that they take. The allowance is refilled
 * with time.
 */
export class UnsolicitedPace implements MessagePace {
  readonly #bounds: UnsolicitedBounds
  readonly #now: () => number
  #left: number
  #updated: number

  /** @param now a clock, in ms */
  constructor (bounds: UnsolicitedBounds = limits.unsolicited, now = () => performance.now()) {
    this.#bounds = bounds
    this.#now = now
    this.#left = bounds.burst
    this.#updated = now()
  }

  count (what: Unsolicited, size = 0): void {
    const { cost, charactersPerMs } = this.#bounds
    this.#left -= cost[what] + size / charactersPerMs
  }

  wait (): number {
    const { burst, perSecond } = this.#bounds
    const now = this.#now()
    this.#left = Math.min(burst, this.#left + (now - this.#updated) / 1_000 * perSecond)
    this.#updated = now
    return this.#left > 0 ? 0 : Math.ceil((1 - this.#left) / perSecond * 1_000)
  }
}

const ofUsers = new BoundedMap<string, UnsolicitedPace>(limits.unsolicited.owners)

/** The pace of a server: one for all servers of a user, and one for each server of an admin. */
export function paceOf (user: string | undefined): UnsolicitedPace {
  if (user === undefined) return new UnsolicitedPace()
  const pace = ofUsers.get(user) ?? new UnsolicitedPace()
  ofUsers.setNewest(user, pace)
  return pace
}
