import { messageOf } from '../../../../db/errors.ts'
import type { Outage } from '../../../base/limits/index.ts'

/**
 * When to try again what failed: after 1 s, then after twice as long each time, up to a minute, and as much longer as
 * it was told.
 */
export class BackOff {
  readonly #now: () => number
  readonly #outage: Pick<Outage, 'failed' | 'over'> | undefined
  #failures = 0
  #until = 0

  /** @param now a clock, in ms @param outage is told of failures, and of their end */
  constructor (now: () => number = () => performance.now(), outage?: Pick<Outage, 'failed' | 'over'>) {
    this.#now = now
    this.#outage = outage
  }

  /** Time that is still to be waited, in ms. */
  get left (): number { return Math.max(0, this.#until - this.#now()) }

  succeeded (): void {
    this.#outage?.over()
    this.#failures = 0
    this.#until = 0
  }

  /** @param atLeast in ms @param error the failure */
  failed (atLeast = 0, error?: unknown): void {
    this.#outage?.failed(messageOf(error))
    const time = Math.min(60_000, 1_000 * 2 ** this.#failures++)
    // With some jitter, so that replicas do not come back together.
    this.#until = this.#now() + Math.max(time * (0.75 + Math.random() / 2), Math.min(atLeast, 10 * 60_000))
  }
}
