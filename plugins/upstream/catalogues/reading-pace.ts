import { upstreamLimits } from '../limits.ts'

/** Delay between a `list_changed` and the reading it causes, in ms, so that a burst causes one reading only. */
const settleTime = 30
/** Max delay between a `list_changed` and its reading, in ms. The delay doubles with each reading without a change. */
const longestSettleTime = 10_000
/** Max delay before a failed list is read again, in ms. The delay starts at `upstreamLimits.listRetry` and grows. */
const longestRetry = 60_000
/** Number of consecutive failures after which `timeout` and `retryDelay` no longer grow. */
const maxFailures = 5

/** Decides when the lists of one slot (connection) are read again. */
export class ReadingPace {
  /** The time at which the lists were last read because of their age, in ms since the epoch. */
  renewedAt = -Infinity
  #settle = settleTime
  /** The time of the last reading, in ms since the epoch. */
  #readAt = -Infinity
  #failures = 0

  /** The delay between a `list_changed` that arrives now and its reading, in ms. A quiet time resets the delay. */
  get changeDelay (): number {
    if (Date.now() - this.#readAt > 10 * this.#settle) this.#settle = settleTime
    return this.#settle
  }

  /** Max time that the next reading waits for the other lists after the first one, in ms. Grows with each failure. */
  get timeout (): number { return upstreamLimits.listTime * 2 ** this.#failures }

  /** The time until the lists are read again after a failure, in ms. */
  get retryDelay (): number { return Math.min(upstreamLimits.listRetry * 2 ** (this.#failures - 1), longestRetry) }

  /** Records a reading. @param isComplete whether all lists were read @param isSame whether it found no change */
  recordReading (isComplete: boolean, isSame: boolean): void {
    this.#readAt = Date.now()
    this.#failures = isComplete ? 0 : Math.min(this.#failures + 1, maxFailures)
    this.#settle = isSame ? Math.min(2 * this.#settle, longestSettleTime) : settleTime
  }
}
