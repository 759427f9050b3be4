/** Lets so many run at once; the others wait in order. */
export class Semaphore {
  #free: number
  readonly #waiting: Array<() => void> = []

  constructor (size: number) {
    this.#free = size
  }

  /** Resolves with the function that gives the place back; calling it twice is harmless. */
  async take (): Promise<() => void> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>((resolve) => { this.#waiting.push(resolve) })
    let given = false
    return () => {
      if (given) return
      given = true
      const next = this.#waiting.shift()
      if (next) next()
      else this.#free++
    }
  }
}
