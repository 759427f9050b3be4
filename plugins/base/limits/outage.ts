import { limits } from './limits.ts'

/** Receives the lines for the log. */
export type Tell = (level: 'info' | 'warn', sentence: string) => void

/** How a part is called in the log when it fails and when it is well: `not connected` and `connected`. */
interface OutageWords { readonly ill: string, readonly well: string }

/**
 * Tells the log of one part that may fail for long: the first failure with its cause, a summary now and then while it lasts, and when it is
 * over. A part that is well for a moment and fails again is told once, too: from then on it counts as well once it has been so for long.
 */
export class Outage {
  readonly #tell: Tell
  readonly #words: OutageWords
  readonly #now: () => number
  #since: number | undefined
  #failures = 0
  #toldAt = 0
  /** When it was well again, in ms since the epoch; undefined: it is not. */
  #wellAt: number | undefined
  /** It has failed again soon after it was well. */
  #hasRelapsed = false
  #timer: NodeJS.Timeout | undefined

  /** @param now in ms since the epoch */
  constructor (tell: Tell, words: OutageWords, now: () => number = Date.now) {
    this.#tell = tell
    this.#words = words
    this.#now = now
  }

  /** It has failed. @param cause a sentence without a full stop, which may have several lines */
  failed (cause: string): void {
    clearTimeout(this.#timer)
    const now = this.#now()
    const { ill } = this.#words
    const wellFor = this.#wellAt === undefined ? undefined : now - this.#wellAt
    this.#wellAt = undefined
    if (this.#since === undefined || (wellFor !== undefined && wellFor >= limits.outages.healthy)) {
      this.#since = now
      this.#failures = 1
      this.#hasRelapsed = false
      this.#warn(`${ill}: ${cause}`)
      return
    }
    this.#failures++
    if (wellFor !== undefined && !this.#hasRelapsed) {
      this.#hasRelapsed = true
      this.#warn(`${ill} again, ${Math.round(wellFor / 1_000)} s after it was ${this.#words.well}: ${cause}`)
    } else if (now - this.#toldAt >= limits.outages.summary) {
      this.#warn(`still ${ill} after ${this.#failures} failures since ${iso(this.#since)}; the last one: ${cause}`)
    }
  }

  /** It works. @returns whether it did not before: then the log is told here */
  over (): boolean {
    if (this.#since === undefined || this.#wellAt !== undefined) return false
    const now = this.#wellAt = this.#now()
    if (!this.#hasRelapsed) this.#tellOver(now)
    else this.#timer = setTimeout(() => { this.#tellOver(now) }, limits.outages.healthy).unref()
    return true
  }

  /** There is nothing to tell any more. */
  end (): void { clearTimeout(this.#timer) }

  #tellOver (at: number): void {
    const { well } = this.#words
    const times = this.#failures === 1 ? 'a failure' : `${this.#failures} failures`
    this.#tell('info', `${well} again since ${iso(at)}, after ${times} since ${iso(this.#since ?? at)}`)
    this.#hasRelapsed = false
  }

  #warn (sentence: string): void {
    this.#toldAt = this.#now()
    this.#tell('warn', sentence)
  }
}

const iso = (time: number): string => new Date(time).toISOString().replace(/\.\d+Z$/, 'Z')
