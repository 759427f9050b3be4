import type { Activities } from '../../../db/ports.ts'

/** Time between two rounds, in ms. */
const interval = 60_000
/** Pause between two steps of a round, in ms: calls are written and read meanwhile. */
const stepPause = 100

/** Removes activities that are older than they are kept, in small steps. Of several replicas, one does so at a time. */
export class Retention {
  readonly #store: Pick<Activities, 'expire'>
  readonly #kept: number
  #timer: NodeJS.Timeout | undefined
  #round: Promise<void> | undefined
  #closed = false

  /** @param kept how long activities are kept, in ms */
  constructor (store: Pick<Activities, 'expire'>, kept: number) {
    this.#store = store
    this.#kept = kept
  }

  start (): void {
    this.#timer = setInterval(() => { this.#begin() }, interval).unref()
    this.#begin()
  }

  /** Resolves when no step is running. */
  async close (): Promise<void> {
    this.#closed = true
    clearInterval(this.#timer)
    await this.#round
  }

  #begin (): void {
    this.#round ??= this.#run().catch(() => {
      // What is left is removed in a later round.
    }).finally(() => { this.#round = undefined })
  }

  async #run (): Promise<void> {
    while (!this.#closed && await this.#store.expire(Date.now() - this.#kept) > 0) {
      await new Promise<void>((resolve) => { setTimeout(resolve, stepPause).unref() })
    }
  }
}
