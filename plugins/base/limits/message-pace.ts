import type { MessagePace, Unasked } from '../../../protocol/transports/valve.ts'
import { BoundedMap } from './bounded-map.ts'
import { limits } from './limits.ts'

/** `cost`: what one message counts; `burst`: what may be used at once, `perSecond`: per second; in ms of CPU time. */
interface UnaskedBounds {
  readonly cost: Readonly<Record<Unasked, number>>
  readonly burst: number
  readonly perSecond: number
}

/** How much of what one owner's servers send unasked is dealt with. What is used up comes back with time. */
export class UnaskedPace implements MessagePace {
  readonly #bounds: UnaskedBounds
  readonly #now: () => number
  #left: number
  #updated: number

  /** @param now a clock, in ms */
  constructor (bounds: UnaskedBounds = limits.unasked, now = () => performance.now()) {
    this.#bounds = bounds
    this.#now = now
    this.#left = bounds.burst
    this.#updated = now()
  }

  count (what: Unasked): void { this.#left -= this.#bounds.cost[what] }

  wait (): number {
    const { burst, perSecond } = this.#bounds
    const now = this.#now()
    this.#left = Math.min(burst, this.#left + (now - this.#updated) / 1_000 * perSecond)
    this.#updated = now
    return this.#left > 0 ? 0 : Math.ceil((1 - this.#left) / perSecond * 1_000)
  }
}

const ofUsers = new BoundedMap<string, UnaskedPace>(limits.unasked.owners)

/** The pace of a server: one for all servers of a user, and one for each server of an admin. */
export function paceOf (user: string | undefined): UnaskedPace {
  if (user === undefined) return new UnaskedPace()
  const pace = ofUsers.get(user) ?? new UnaskedPace()
  ofUsers.setNewest(user, pace)
  return pace
}
