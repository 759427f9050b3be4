/** Admits a fixed number of holders at the same time; the others wait in order. */
export class Semaphore {
  #free: number
  readonly #waiting: Array<() => void> = []

  constructor (size: number) {
    this.#free = size
  }

  /** Waits for a free place. @returns the function that releases it, which may be called more than once */
  async take (): Promise<() => void> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>((resolve) => { this.#waiting.push(resolve) })
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      const next = this.#waiting.shift()
      if (next) next()
      else this.#free++
    }
  }
}
