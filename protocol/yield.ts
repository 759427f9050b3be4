/** How long work that can wait holds the event loop at most, in ms. */
const longest = 10
/** So many characters of a long text are turned into bytes at once. */
const chunkSize = 64 * 1024

/** Tells when a long task has held the event loop for its share, and gives the loop back. Used between two steps of work that can wait. */
export class LoopBudget {
  #begun = performance.now()

  /** True when it is time to `yieldToEventLoop`. */
  get spent (): boolean { return performance.now() - this.#begun >= longest }

  async yieldToEventLoop (): Promise<void> {
    await new Promise((resolve) => { setImmediate(resolve) })
    this.#begun = performance.now()
  }
}

/** A long text as UTF-8, made in turns. In chunks: a single character that needs two bytes would make all of it slow. */
export async function toBytes (pieces: Iterable<string>): Promise<Buffer> {
  const chunks: Buffer[] = []
  const budget = new LoopBudget()
  let waiting = ''
  for (const piece of pieces) {
    waiting += piece
    if (waiting.length < chunkSize) continue
    chunks.push(Buffer.from(waiting))
    waiting = ''
    if (budget.spent) await budget.yieldToEventLoop()
  }
  return Buffer.concat([...chunks, Buffer.from(waiting)])
}
