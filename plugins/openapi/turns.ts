/** How long work that can wait holds the event loop at most, in ms. */
const longest = 10

/** Gives the event loop back when it has been held for long: to be asked between two steps of work that nobody else should wait for. */
export class Turns {
  #begun = performance.now()

  /** True when it is time to `pass`. */
  get due (): boolean { return performance.now() - this.#begun >= longest }

  async pass (): Promise<void> {
    await new Promise((resolve) => { setImmediate(resolve) })
    this.#begun = performance.now()
  }
}
