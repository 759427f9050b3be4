import { messageOf } from '../../../../db/errors.ts'
import type { Outage } from '../../../base/limits/index.ts'

/**
 * Exponential back-off: 1 s after the first failure, then twice as long after each further one, up to a minute; a
 * longer `Retry-After` takes precedence.
 */
export class BackOff {
  readonly #now: () => number
  readonly #outage: Pick<Outage, 'failed' | 'over'> | undefined
  #failures = 0
  #until = 0

  /**
   * @param now a clock, in ms
   * @param outage is notified of failures and of the first success after them
   */
  constructor (now: () => number = () => performance.now(), outage?: Pick<Outage, 'failed' | 'over'>) {
    this.#now = now
    this.#outage = outage
  }

  /** The time left until the next attempt, in ms. */
  get left (): number { return Math.max(0, this.#until - this.#now()) }

  succeeded (): void {
    this.#outage?.over()
    this.#failures = 0
    this.#until = 0
  }

  /** Records a failure. @param atLeast min time to wait, in ms */
  failed (atLeast = 0, error?: unknown): void {
    this.#outage?.failed(messageOf(error))
    const time = Math.min(60_000, 1_000 * 2 ** this.#failures++)
    // Jitter spreads the retries of several replicas.
    this.#until = this.#now() + Math.max(time * (0.75 + Math.random() / 2), Math.min(atLeast, 10 * 60_000))
  }
}
