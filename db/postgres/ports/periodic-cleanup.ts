/** Min time between two cleanups, in ms. */
const interval = 60_000

/**
 * Removes expired rows in the background of a write, at most once a minute. After a failure, the next run removes them.
 */
export class PeriodicCleanup {
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
