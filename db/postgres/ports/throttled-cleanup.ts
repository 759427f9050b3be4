/** Min time between two cleanups, in ms. */
const interval = 60_000

/**
 * Runs a cleanup in the background, at most once a minute. A failure is ignored, since the next run does the same work.
 */
export class ThrottledCleanup {
  readonly #cleanUp: () => Promise<unknown>
  #lastRun = -Infinity

  constructor (cleanUp: () => Promise<unknown>) {
    this.#cleanUp = cleanUp
  }

  /** Starts a cleanup if one is due, without waiting for it. */
  runIfDue (): void {
    if (performance.now() - this.#lastRun < interval) return
    this.#lastRun = performance.now()
    void this.#cleanUp().catch(() => {})
  }
}
