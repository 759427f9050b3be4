import { upstreamLimits } from '../limits.ts'

/** Time for which further `list_changed` are awaited, in ms: a server that changes many things sends a burst. */
const settleTime = 30
/** For a server whose `list_changed` brings no change, that time doubles up to this, in ms. */
const longestSettleTime = 10_000
/** A list that failed is read again after `upstreamLimits.listRetry` ms, and each time later, up to this, in ms. */
const longestRetry = 60_000
/** Failures in a row that lengthen the waits. */
const mostFailures = 5

/** The pace at which the lists of one slot are read. Times are in ms since the epoch. */
export class ReadingPace {
  /** The time at which the lists were last read because of their age. */
  renewed = -Infinity
  #settle = settleTime
  #read = -Infinity
  #failures = 0

  /** How long further changes are awaited now, in ms. */
  get wait (): number {
    if (Date.now() - this.#read > 10 * this.#settle) this.#settle = settleTime
    return this.#settle
  }

  /** Max time for the next reading, in ms. */
  get timeout (): number { return upstreamLimits.listTime * 2 ** this.#failures }

  /** Time until lists that failed are read again, in ms. */
  get retry (): number { return Math.min(upstreamLimits.listRetry * 2 ** (this.#failures - 1), longestRetry) }

  /** Notes a reading. @param whole no list failed @param same nothing had changed */
  note (whole: boolean, same: boolean): void {
    this.#read = Date.now()
    this.#failures = whole ? 0 : Math.min(this.#failures + 1, mostFailures)
    this.#settle = same ? Math.min(2 * this.#settle, longestSettleTime) : settleTime
  }
}
