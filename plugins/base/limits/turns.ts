import { setTimeout as sleep } from 'node:timers/promises'
import type { LargeWork, Pause } from '../../../protocol/large-message.ts'
import { turnForLongWork } from '../../../protocol/yield.ts'
import { BoundedMap } from './bounded-map.ts'
import { limits } from './limits.ts'
import { Semaphore } from './semaphore.ts'
import { ShareError, Shares } from './shares.ts'

interface TurnsBounds {
  /** Max pieces of work that run or wait, with a share for each owner. */
  readonly pieces: number
  /** CPU time of one owner per second, and at once, in ms. */
  readonly perSecond: number
  readonly burst: number
  /** Max time that a piece waits because its owner has used up the CPU time, in ms. */
  readonly longestWait: number
  /** Max owners whose CPU time is counted. */
  readonly owners: number
}

/** What one owner has left of the CPU time, as of when. */
interface Account { left: number, updated: number }

/**
 * Long work on what strangers send, in steps of about a millisecond (DECISIONS §15). One step is done in a turn of the event loop, so small
 * requests run in between, and owners take turns. An owner who has used more than his CPU time waits, then is refused.
 */
export class Turns implements LargeWork {
  readonly #bounds: TurnsBounds
  readonly #step = new Semaphore({ places: 1 })
  readonly #pieces: Shares
  readonly #accounts: BoundedMap<string, Account>
  readonly #now: () => number

  /** @param now a clock, in ms */
  constructor (bounds: TurnsBounds = limits.largeWork, now = () => performance.now()) {
    this.#bounds = bounds
    this.#now = now
    this.#pieces = new Shares(bounds.pieces, 'large requests and answers')
    this.#accounts = new BoundedMap(bounds.owners, { isEvictable: (_owner, account) => this.#leftOf(account) >= bounds.burst })
  }

  /**
   * Runs one piece of work.
   * @param work takes a step between any two calls of `pause`, synchronously
   * @throws ShareError; what the work throws
   */
  async run<Result> (owner: string, work: (pause: Pause) => Promise<Result>): Promise<Result> {
    const leave = this.#pieces.take(owner)
    let end = await this.#begin(owner).catch((error: unknown) => { leave(); throw error })
    try {
      return await work(async () => {
        end()
        end = () => {}
        end = await this.#begin(owner)
      })
    } finally {
      end()
      leave()
    }
  }

  /** Takes one step, however long the owner has to wait for it: of work that waits for others in between, as writing an answer does. */
  async step (owner: string, work: () => void): Promise<void> {
    const end = await this.#begin(owner, Infinity)
    try {
      work()
    } finally {
      end()
    }
  }

  /** Waits for the owner's next step. @returns the function that ends it @throws ShareError when that takes longer than `longestWait` ms */
  async #begin (owner: string, longestWait = this.#bounds.longestWait): Promise<() => void> {
    await this.#afford(owner, longestWait)
    const release = await this.#step.take(owner)
    await turnForLongWork()
    const begun = this.#now()
    return () => {
      const account = this.#accounts.get(owner) ?? { left: this.#bounds.burst, updated: begun }
      account.left = this.#leftOf(account) - (this.#now() - begun)
      account.updated = this.#now()
      this.#accounts.set(owner, account)
      release()
    }
  }

  /** Waits until the owner may use CPU time. @throws ShareError */
  async #afford (owner: string, longestWait: number): Promise<void> {
    const { perSecond } = this.#bounds
    const until = this.#now() + longestWait
    for (;;) {
      const account = this.#accounts.get(owner)
      const left = account ? this.#leftOf(account) : 1
      if (left > 0) return
      if (this.#now() >= until) throw new ShareError(tooMuch, true)
      await sleep(Math.min(Math.ceil(-left / perSecond * 1_000) + 1, longestWait))
    }
  }

  #leftOf ({ left, updated }: Account): number {
    return Math.min(this.#bounds.burst, left + (this.#now() - updated) / 1_000 * this.#bounds.perSecond)
  }
}

const tooMuch = 'Your large requests and answers take more CPU time than one caller may; try again later'

/** The turns of this process. */
export const turns = new Turns()
