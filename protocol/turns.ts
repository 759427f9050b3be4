/** How long work that can wait holds the event loop at most, in ms. */
const longest = 10
/** So many characters of a long text are turned into bytes at once. */
const chunkSize = 64 * 1024

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

/** A long text as UTF-8, made in turns. In chunks: a single character that needs two bytes would make all of it slow. */
export async function toBytes (pieces: Iterable<string>): Promise<Buffer> {
  const chunks: Buffer[] = []
  const turns = new Turns()
  let waiting = ''
  for (const piece of pieces) {
    waiting += piece
    if (waiting.length < chunkSize) continue
    chunks.push(Buffer.from(waiting))
    waiting = ''
    if (turns.due) await turns.pass()
  }
  return Buffer.concat([...chunks, Buffer.from(waiting)])
}
