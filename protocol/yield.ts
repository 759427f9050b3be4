/** Max time that a task of low urgency holds the event loop, in ms. */
const maxHold = 0.5
/** Characters of a long text that are encoded at once. */
const chunkSize = 64 * 1024

/**
 * Measures how long a task has held the event loop, and yields to it. Used between two steps of a task of low urgency.
 */
export class LoopBudget {
  #begun = performance.now()

  /** True when it is time to `yieldToEventLoop`. */
  get spent (): boolean { return performance.now() - this.#begun >= maxHold }

  async yieldToEventLoop (): Promise<void> {
    await new Promise((resolve) => { setImmediate(resolve) })
    this.#begun = performance.now()
  }

  /** Yields where it is time. */
  readonly pause = async (): Promise<void> => { if (this.spent) await this.yieldToEventLoop() }
}

/** The length of several chunks together, in bytes. */
export const lengthOf = (chunks: readonly Uint8Array[]): number => chunks.reduce((sum, { length }) => sum + length, 0)

/**
 * A long text as UTF-8, encoded without holding the event loop. In chunks: one character beyond Latin-1 slows down a
 * whole string.
 */
export async function toBytes (pieces: Iterable<string>): Promise<Buffer> {
  const chunks: Buffer[] = []
  const budget = new LoopBudget()
  let waiting = ''
  for (const piece of pieces) {
    waiting += piece
    if (waiting.length >= chunkSize) {
      chunks.push(Buffer.from(waiting))
      waiting = ''
    }
    if (budget.spent) await budget.yieldToEventLoop()
  }
  return Buffer.concat([...chunks, Buffer.from(waiting)])
}
