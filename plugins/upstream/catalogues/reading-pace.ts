import { upstreamLimits } from '../limits.ts'

/** The delay between a `list_changed` and the reading it causes, in ms, so that one reading serves a burst. */
const settleTime = 30
/** Max of that delay, in ms. It doubles with each reading that finds no change. */
const longestSettleTime = 10_000
/** Max delay before a failed list is read again, in ms. The delay starts at `upstreamLimits.listRetry` and grows. */
const longestRetry = 60_000
/** Max consecutive failures that lengthen `timeout` and `retry`. */
const maxFailures = 5

/** Decides when the lists of one connection are read again. */
export class ReadingPace {
  /** The time at which the lists were last read because of their age, in ms since the epoch. */
  renewedAt = -Infinity
  #settle = settleTime
  /** The time of the last reading, in ms since the epoch. */
  #readAt = -Infinity
  #failures = 0

  /** The delay before the reading that a `list_changed` causes now, in ms. */
  get changeDelay (): number {
    if (Date.now() - this.#readAt > 10 * this.#settle) this.#settle = settleTime
    return this.#settle
  }

  /** Max time that the next reading waits for its remaining lists, in ms. It grows with the number of failures. */
  get timeout (): number { return upstreamLimits.listTime * 2 ** this.#failures }

  /** Time until lists that failed are read again, in ms. */
  get retryDelay (): number { return Math.min(upstreamLimits.listRetry * 2 ** (this.#failures - 1), longestRetry) }

  /** Records a reading. @param isComplete whether no list failed @param isSame whether nothing had changed */
  recordReading (isComplete: boolean, isSame: boolean): void {
    this.#readAt = Date.now()
    this.#failures = isComplete ? 0 : Math.min(this.#failures + 1, maxFailures)
    this.#settle = isSame ? Math.min(2 * this.#settle, longestSettleTime) : settleTime
  }
}
