/** Tells whether a caller went away before its answer. It is no AbortSignal, since one per call costs more than the rest of a call. */
export class Disconnect {
  #hasHappened = false
  #listener: (() => void) | undefined

  /** Calls `run` when the caller goes away; at once if it has. Replaces the former `run`, whose request has ended. */
  listen (run: () => void): void {
    this.#listener = run
    if (this.#hasHappened) run()
  }

  happen (): void {
    if (this.#hasHappened) return
    this.#hasHappened = true
    this.#listener?.()
  }
}
