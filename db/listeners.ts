import { messageOf } from './errors.ts'
import type { Snapshot } from './store.ts'

/** The listeners of `Store.onChange`. */
export class SnapshotListeners {
  readonly #listeners = new Set<(snapshot: Snapshot) => void>()
  readonly #warn: (message: string) => void

  constructor (warn: (message: string) => void) {
    this.#warn = warn
  }

  /** Adds a listener. @returns a function that removes it */
  add (listener: (snapshot: Snapshot) => void): () => void {
    this.#listeners.add(listener)
    return () => { this.#listeners.delete(listener) }
  }

  /** Calls all listeners. An error thrown by one is logged, and does not affect the others. */
  notify (snapshot: Snapshot): void {
    for (const listener of this.#listeners) {
      try {
        listener(snapshot)
      } catch (error) {
        this.#warn(`A change of the settings could not be applied in full: ${messageOf(error)}`)
      }
    }
  }

  clear (): void {
    this.#listeners.clear()
  }
}
