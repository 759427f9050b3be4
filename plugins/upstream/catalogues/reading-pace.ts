import { upstreamLimits } from '../limits.ts'

/** The delay between a `list_changed` and the reading that follows it, in ms: one reading then serves a burst. */
const settleTime = 30
/** Each reading that finds nothing changed doubles that delay, up to this, in ms. */
const longestSettleTime = 10_000
/** A list that failed is read again after `upstreamLimits.listRetry` ms, and each time later, up to this, in ms. */
const longestRetry = 60_000
/** Max failures in a row that count for the two times below. */
const mostFailures = 5

/** Decides when the lists of one connection are read again. Times are in ms since the epoch. */
export class ReadingPace {
  /** The time at which the lists were last read because of their age. */
  renewed = -Infinity
  #settle = settleTime
  #read = -Infinity
  #failures = 0

  /** The delay before the reading that a `list_changed` causes now, in ms. */
  get wait (): number {
    if (Date.now() - this.#read > 10 * this.#settle) this.#settle = settleTime
    return this.#settle
  }

  /** Max time that the next reading waits for its remaining lists, in ms; longer after failures. */
  get timeout (): number { return upstreamLimits.listTime * 2 ** this.#failures }

  /** Time until lists that failed are read again, in ms. */
  get retry (): number { return Math.min(upstreamLimits.listRetry * 2 ** (this.#failures - 1), longestRetry) }

  /** Records the outcome of a reading. @param whole no list failed @param same nothing had changed */
  note (whole: boolean, same: boolean): void {
    this.#read = Date.now()
    this.#failures = whole ? 0 : Math.min(this.#failures + 1, mostFailures)
    this.#settle = same ? Math.min(2 * this.#settle, longestSettleTime) : settleTime
  }
}
