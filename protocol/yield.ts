/** Max time for which a low-priority task blocks the event loop, in ms. */
const maxHold = 0.5
/** Min characters of a long text that are encoded at a time. */
const chunkSize = 64 * 1024

/** Measures how long a low-priority task has blocked the event loop. The task uses it between its steps, to yield. */
export class LoopBudget {
  #begun = performance.now()

  /** Whether the task should call `yieldToEventLoop`. */
  get isSpent (): boolean { return performance.now() - this.#begun >= maxHold }

  async yieldToEventLoop (): Promise<void> {
    await new Promise((resolve) => { setImmediate(resolve) })
    this.#begun = performance.now()
  }

  /** Yields if the time is used up. */
  readonly pause = async (): Promise<void> => { if (this.isSpent) await this.yieldToEventLoop() }
}

/**
 * Encodes a long text as UTF-8 without blocking the event loop. It is encoded in chunks, since one character beyond
 * Latin-1 makes the encoding of a string slower.
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
    if (budget.isSpent) await budget.yieldToEventLoop()
  }
  return Buffer.concat([...chunks, Buffer.from(waiting)])
}
