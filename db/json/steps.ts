import { setTimeout as sleep } from 'node:timers/promises'

/** How long one step takes, in ms. */
const step = 1
/** Bytes that are copied at once: memory that is new is provided page by page while it is written. */
const copiedAtOnce = 64 * 1024

/** Lets others work within a long change. Not by setImmediate: after a callback of I/O, that runs before sockets are read. */
export const pause = async (): Promise<void> => { await sleep(0) }

/** Lets others work after each step. */
class Steps {
  #begun = performance.now()

  get isOver (): boolean { return performance.now() - this.#begun >= step }

  async next (): Promise<void> {
    // Sockets are read between two of these, and a timer would double the time that all steps take.
    await new Promise((resolve) => { setImmediate(resolve) })
    this.#begun = performance.now()
  }
}

/** The pieces of a text, as one buffer of UTF-8, without holding the event loop for longer than the largest of them takes. */
export async function bytesInSteps (pieces: Iterable<string>): Promise<Buffer> {
  const steps = new Steps()
  const chunks: Buffer[] = []
  let length = 0
  let text = ''
  const encode = (): void => {
    const chunk = Buffer.from(text)
    chunks.push(chunk)
    length += chunk.length
    text = ''
  }
  for (const piece of pieces) {
    text += piece
    if (text.length >= copiedAtOnce) encode()
    if (steps.isOver) await steps.next()
  }
  encode()
  const bytes = Buffer.allocUnsafeSlow(length)
  let at = 0
  for (const chunk of chunks) {
    for (let from = 0; from < chunk.length; from += copiedAtOnce) {
      at += chunk.copy(bytes, at, from, from + copiedAtOnce)
      if (steps.isOver) await steps.next()
    }
  }
  return bytes
}
