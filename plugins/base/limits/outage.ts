import { baseLimits } from './limits.ts'

/** Logs a sentence about an outage. */
export type ReportOutage = (level: 'info' | 'warn', sentence: string) => void

/** Words for the two states of a component, such as `not connected` and `connected`. */
interface OutageStates { readonly failing: string, readonly working: string }

/**
 * Logs the outages of one component: the first failure with its cause, summaries while the outage lasts, and its end.
 * The first relapse soon after a recovery is logged, too; from then on, the component counts as recovered only after it
 * has worked for `baseLimits.outages.healthy`.
 */
export class OutageLog {
  readonly #report: ReportOutage
  readonly #words: OutageStates
  readonly #now: () => number
  #since: number | undefined
  #failures = 0
  #reportedAt = 0
  /** The time of the recovery, in ms since the epoch; undefined while the outage lasts. */
  #recoveredAt: number | undefined
  /** Whether the component has failed again soon after a recovery. */
  #hasRelapsed = false
  #timer: NodeJS.Timeout | undefined

  /** @param now returns the current time, in ms since the epoch */
  constructor (report: ReportOutage, words: OutageStates, now: () => number = Date.now) {
    this.#report = report
    this.#words = words
    this.#now = now
  }

  /** Records a failure. @param cause a sentence without a full stop; it may have several lines */
  recordFailure (cause: string): void {
    clearTimeout(this.#timer)
    const now = this.#now()
    const { failing } = this.#words
    const wellFor = this.#recoveredAt === undefined ? undefined : now - this.#recoveredAt
    this.#recoveredAt = undefined
    if (this.#since === undefined || (wellFor !== undefined && wellFor >= baseLimits.outages.healthy)) {
      this.#since = now
      this.#failures = 1
      this.#hasRelapsed = false
      this.#warn(`${failing}: ${cause}`)
      return
    }
    this.#failures++
    if (wellFor !== undefined && !this.#hasRelapsed) {
      this.#hasRelapsed = true
      this.#warn(`${failing} again, ${Math.round(wellFor / 1_000)} s after the recovery: ${cause}`)
    } else if (now - this.#reportedAt >= baseLimits.outages.summary) {
      this.#warn(`still ${failing} after ${this.#failures} failures since ${iso(this.#since)}; the last one: ${cause}`)
    }
  }

  /** Records a success. @returns whether the last record was a failure */
  recordSuccess (): boolean {
    if (this.#since === undefined || this.#recoveredAt !== undefined) return false
    const now = this.#recoveredAt = this.#now()
    if (!this.#hasRelapsed) this.#reportEnd(now)
    else this.#timer = setTimeout(() => { this.#reportEnd(now) }, baseLimits.outages.healthy).unref()
    return true
  }

  /** Cancels the pending log line about a recovery, if any. */
  stop (): void { clearTimeout(this.#timer) }

  #reportEnd (at: number): void {
    const { working } = this.#words
    const times = this.#failures === 1 ? 'a failure' : `${this.#failures} failures`
    this.#report('info', `${working} again since ${iso(at)}, after ${times} since ${iso(this.#since ?? at)}`)
    this.#hasRelapsed = false
  }

  #warn (sentence: string): void {
    this.#reportedAt = this.#now()
    this.#report('warn', sentence)
  }
}

const iso = (time: number): string => new Date(time).toISOString().replace(/\.\d+Z$/, 'Z')
