import { messageOf } from '../../../../db/errors.ts'
import type { OutageLog } from '../../../base/limits/index.ts'

/**
 * Exponential back-off: `waitTime` is about 1 s after the first failure, and doubles with each further failure, up to
 * about a minute. A longer `Retry-After`, up to ten minutes, takes precedence.
 */
export class BackOff {
  readonly #now: () => number
  readonly #outage: Pick<OutageLog, 'recordFailure' | 'recordSuccess'> | undefined
  #failureCount = 0
  #retryAt = 0

  /** @param now a clock, in ms @param outage logs the start and the end of an outage; undefined: nothing is logged */
  constructor (
    now: () => number = () => performance.now(), outage?: Pick<OutageLog, 'recordFailure' | 'recordSuccess'>
  ) {
    this.#now = now
    this.#outage = outage
  }

  /** The time to wait before the next attempt, in ms. */
  get waitTime (): number { return Math.max(0, this.#retryAt - this.#now()) }

  recordSuccess (): void {
    this.#outage?.recordSuccess()
    this.#failureCount = 0
    this.#retryAt = 0
  }

  /**
   * Records a failed attempt.
   * @param atLeast min time to wait, in ms; at most 10 minutes of it count
   * @param error the cause, for the log
   */
  recordFailure (atLeast = 0, error?: unknown): void {
    this.#outage?.recordFailure(messageOf(error))
    const time = Math.min(60_000, 1_000 * 2 ** this.#failureCount++)
    // Jitter spreads the retries of several replicas.
    this.#retryAt = this.#now() + Math.max(time * (0.75 + Math.random() / 2), Math.min(atLeast, 10 * 60_000))
  }
}
