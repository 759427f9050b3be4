import { TokenBucket, type Rate } from './token-bucket.ts'

/**
 * Limits the lines that one source writes to the log. After a burst, lines are left out until the bucket is full again, so that lines
 * that belong together stay together; then their number is reported.
 */
export class LineLimit {
  readonly #bucket: TokenBucket
  readonly #rate: Rate
  readonly #report: (omitted: number) => void
  #isSilent = false
  #omitted = 0

  /** @param now a clock, in ms */
  constructor (rate: Rate, report: (omitted: number) => void, now?: () => number) {
    this.#bucket = new TokenBucket(rate, { maxKeys: 1, now })
    this.#rate = rate
    this.#report = report
  }

  /** Whether the log may have a line. @param cost in tokens */
  allows (cost = 1): boolean {
    if (this.#isSilent && this.#bucket.wait('', this.#rate.burst) === 0) {
      if (this.#omitted > 0) this.#report(this.#omitted)
      this.#isSilent = false
      this.#omitted = 0
    }
    this.#isSilent ||= !this.#bucket.take('', cost)
    if (this.#isSilent) this.#omitted++
    return !this.#isSilent
  }
}
