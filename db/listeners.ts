import type { Snapshot } from './store.ts'

/** Who is told of the snapshots that somebody else made. */
export class Listeners {
  readonly #listeners = new Set<(snapshot: Snapshot) => void>()
  readonly #warn: (sentence: string) => void

  constructor (warn: (sentence: string) => void) {
    this.#warn = warn
  }

  /** @returns the function that ends it */
  add (listener: (snapshot: Snapshot) => void): () => void {
    this.#listeners.add(listener)
    return () => { this.#listeners.delete(listener) }
  }

  /** One that throws keeps no other from being told. */
  tell (snapshot: Snapshot): void {
    for (const listener of this.#listeners) {
      try {
        listener(snapshot)
      } catch (error) {
        this.#warn(`A change of the settings could not be taken up everywhere: ${error instanceof Error ? error.message : String(error)}`)
      }
    }
  }

  clear (): void {
    this.#listeners.clear()
  }
}
