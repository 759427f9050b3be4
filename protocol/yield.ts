/** Max time that a low-priority task may block the event loop at a stretch, in ms. */
const maxHold = 0.5
/** Min number of characters that `toBytes` encodes at a time. */
const chunkSize = 64 * 1024

/** Measures how long a low-priority task has blocked the event loop, and lets the task yield between its steps. */
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
 * Latin-1 slows down the encoding of a whole string.
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
