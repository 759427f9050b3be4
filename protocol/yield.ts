/** Max time that work of low urgency holds the event loop, in ms: a call that needs four turns of it waits for four such times. */
const longest = 0.5
/** Characters of a long text that are encoded at once. */
const chunkSize = 64 * 1024

/** How long a request needs the event loop after it has arrived, in ms: until its server has it, or for its whole answer. */
const needed = 3
/** How long a step waits for requests at most, in ms: where they never end, long work has a part of the event loop all the same. */
const longestWait = 6

const waiting: Array<() => void> = []
/** When the last request arrived, and since when the next step waits for requests. By the clock of `performance.now()`. */
let arrived = -Infinity
let waitsSince: number | undefined

/** Notes that a request has arrived. Steps of long work leave the event loop to it. */
export function noteArrival (): void { arrived = performance.now() }

/** Lets one task go on: those of low urgency share the turns of the event loop, so that many hold it no longer than one. */
function letOneGoOn (): void {
  const now = performance.now()
  if (now - arrived < needed && now - (waitsSince ??= now) < longestWait) {
    // Then what has arrived meanwhile comes first again.
    setTimeout(() => { setImmediate(letOneGoOn) }, 1)
    return
  }
  waitsSince = undefined
  const goOn = waiting.shift()
  if (waiting.length > 0) setImmediate(letOneGoOn)
  goOn?.()
}

/** Resolves when the event loop has time for a step of long work: one in each turn, after what has arrived. */
export async function turnForLongWork (): Promise<void> {
  await new Promise<void>((resolve) => { if (waiting.push(resolve) === 1) setImmediate(letOneGoOn) })
}

/** Measures how long a task has held the event loop, and yields to it. Used between two steps of a task of low urgency. */
export class LoopBudget {
  #begun = performance.now()

  /** True when it is time to `yieldToEventLoop`. */
  get spent (): boolean { return performance.now() - this.#begun >= longest }

  async yieldToEventLoop (): Promise<void> {
    await turnForLongWork()
    this.#begun = performance.now()
  }

  /** Yields where it is time. */
  readonly pause = async (): Promise<void> => { if (this.spent) await this.yieldToEventLoop() }
}

/** Bytes that are copied in one step. New memory is provided page by page while it is written, which takes longer than the copy. */
const copiedAtOnce = 64 * 1024

/** Several buffers as one, copied without holding the event loop. @param pause called after each step */
export async function joinInSteps (chunks: readonly Buffer[], pause: () => Promise<void>): Promise<Buffer> {
  const [only] = chunks
  if (only && chunks.length === 1) return only
  const whole = Buffer.allocUnsafeSlow(lengthOf(chunks))
  await copyInSteps(chunks, whole, pause)
  return whole
}

/** The length of several chunks together, in bytes. */
export const lengthOf = (chunks: readonly Uint8Array[]): number => chunks.reduce((sum, { length }) => sum + length, 0)

/** Copies several buffers, one after the other, without holding the event loop. @param pause called after each step */
export async function copyInSteps (chunks: readonly Buffer[], whole: Uint8Array, pause: () => Promise<void>): Promise<void> {
  let at = 0
  let paused = 0
  for (const chunk of chunks) {
    for (let from = 0; from < chunk.length; from += copiedAtOnce) {
      at += chunk.copy(whole, at, from, from + copiedAtOnce)
      if (at - paused < copiedAtOnce) continue
      paused = at
      await pause()
    }
  }
}

/** A long text as UTF-8, encoded without holding the event loop. In chunks: one character beyond Latin-1 slows down a whole string. */
export async function toChunks (pieces: Iterable<string>): Promise<Buffer[]> {
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
  return [...chunks, Buffer.from(waiting)]
}

/** The same as one buffer. */
export async function toBytes (pieces: Iterable<string>): Promise<Buffer> {
  return await joinInSteps(await toChunks(pieces), new LoopBudget().pause)
}
