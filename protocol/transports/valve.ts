import type { Receiver } from './transport.ts'

/**
 * What a server sends without being asked: a message that no request of ours waits for, something that is no message, or many pieces of a
 * few bytes each.
 */
export type Unasked = 'request' | 'notification' | 'response' | 'noise' | 'crumbs'

/** Bounds how much of what servers send unasked is dealt with. The gateway bounds the sum of all servers of one user. */
export interface MessagePace {
  count: (what: Unasked) => void
  /** Time until more is dealt with, in ms; 0: now. */
  wait: () => number
}

/** Without bounds. */
export const noPace: MessagePace = { count: () => {}, wait: () => 0 }

/** Messages of ours, beside requests, that may be on their way to a server; beyond: less of what it sends is dealt with. */
export const mostOnTheirWay = 64
/** How long a server waits that does not take our answers, in ms. */
const untilTaken = 20

/** A pace that also waits while a server is slow to take what we answer: what it asks must not pile up here. */
export const untilTakenBy = (pace: MessagePace = noPace, isSlow: () => boolean): MessagePace => ({
  count: (what) => { pace.count(what) },
  wait: () => pace.wait() || (isSlow() ? untilTaken : 0)
})

/**
 * How long larger chunks, of all servers, are taken in one turn of the event loop, in ms, and how many messages that nobody waits for:
 * to pass them on takes longer than to take them, and comes later in the same turn.
 */
const longest = 2
/** What a small piece counts, in ms: to read the clock twice would take half as long. */
const smallPiece = 0.004
const mostMessages = 8
const turn = { time: 0, messages: 0 }

/** Counts from now on what the current turn of the event loop takes, until it ends. */
function beginTurn (): void {
  if (turn.time > 0 || turn.messages > 0) return
  setImmediate(() => {
    turn.time = 0
    turn.messages = 0
  })
}

const isTurnOver = (): boolean => turn.time >= longest || turn.messages >= mostMessages

/** What goes on in a later turn, in order. */
const later: Array<() => void> = []
let isPlanned = false

/** Runs something in the next turn of the event loop that has room for it. */
function inLaterTurn (run: () => void): void {
  later.push(run)
  if (!isPlanned) setImmediate(runLater)
  isPlanned = true
}

function runLater (): void {
  for (let count = later.length; count > 0 && !isTurnOver(); count--) later.shift()?.()
  isPlanned = later.length > 0
  if (isPlanned) setImmediate(runLater)
}

/** The same receiver, with what it has not asked for counted. */
export function counting (receiver: Receiver, pace: MessagePace): Receiver {
  return {
    message: (message, origin) => {
      const isAwaited = receiver.message(message, origin)
      if (!isAwaited) {
        pace.count(message.kind)
        beginTurn()
        turn.messages++
      }
      return isAwaited
    },
    failed: (id, error) => { receiver.failed(id, error) },
    paused: (id, retry) => { receiver.paused(id, retry) },
    doubted: () => { receiver.doubted?.() },
    closed: (error) => { receiver.closed(error) }
  }
}

interface ValveOptions {
  readonly pace?: MessagePace
  /** Takes the next bytes. Never throws. */
  readonly take: (bytes: Buffer) => void
  /** Stops and continues the source of the bytes. What has arrived by then may still come. */
  readonly pause: () => void
  readonly resume: () => void
}

/** Bytes that are taken at once: some small messages, by which a server may go beyond its pace; of a longer line up to `longPiece`. */
const pieceSize = 1024
const longPiece = 16 * 1024
const lineEnds = [0x0a, 0x0d]

/** Where the piece ends that begins at a place. Large messages have no line ends, so that more of one is taken at once. */
function pieceEnd (chunk: Buffer, at: number): number {
  const part = chunk.subarray(at + pieceSize, at + longPiece)
  const ends = lineEnds.map((lineEnd) => part.indexOf(lineEnd)).filter((end) => end !== -1)
  return Math.min(chunk.length, at + longPiece, ...ends.map((end) => at + pieceSize + end + 1))
}
/**
 * Passes on the bytes that a server sends, in order. It holds them back where they would hold the event loop for long, or are beyond the
 * server's pace; the server then waits, as its socket or pipe is not read.
 */
export class Valve {
  readonly #options: ValveOptions
  readonly #waiting: Array<Buffer | (() => void)> = []
  #isHeld = false

  constructor (options: ValveOptions) {
    this.#options = options
  }

  push (chunk: Buffer): void {
    if (this.#isHeld) {
      this.#waiting.push(chunk)
      return
    }
    const { pace = noPace } = this.#options
    const early = pace.wait()
    // Another stream of the server may have used up what there was.
    if (early > 0) this.#waiting.push(chunk)
    const wait = early || this.#pass(chunk)
    if (wait === undefined) return
    this.#isHeld = true
    this.#options.pause()
    this.#goOnIn(wait)
  }

  /** Runs something once all that came before is taken. */
  then (run: () => void): void {
    if (this.#isHeld) this.#waiting.push(run)
    else run()
  }

  /** Drops what waits. */
  clear (): void { this.#waiting.length = 0 }

  /**
   * Takes a chunk, or the beginning of it: the rest then waits.
   * @returns how long to wait before more is taken, in ms, where that is necessary; 0: until the next turn of the event loop
   */
  #pass (chunk: Buffer): number | undefined {
    const { take, pace = noPace } = this.#options
    if (chunk.length <= pieceSize) {
      take(chunk)
      beginTurn()
      turn.time += smallPiece
      return pace.wait() || (isTurnOver() ? 0 : undefined)
    }
    for (let at = 0, end = 0; at < chunk.length; at = end) {
      end = pieceEnd(chunk, at)
      const begun = performance.now()
      take(chunk.subarray(at, end))
      beginTurn()
      turn.time += performance.now() - begun
      const wait = pace.wait()
      if (wait === 0 && !isTurnOver()) continue
      if (end < chunk.length) this.#waiting.unshift(chunk.subarray(end))
      return wait
    }
    return undefined
  }

  #goOnIn (wait: number): void {
    if (wait > 0) setTimeout(this.#goOn, wait).unref()
    else inLaterTurn(this.#goOn)
  }

  readonly #goOn = (): void => {
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      if (typeof next === 'function') {
        next()
        continue
      }
      const { pace = noPace } = this.#options
      const early = pace.wait()
      if (early > 0) this.#waiting.unshift(next)
      const wait = early || this.#pass(next)
      if (wait === undefined) continue
      this.#goOnIn(wait)
      return
    }
    this.#isHeld = false
    beginTurn()
    const { time } = turn
    const begun = performance.now()
    this.#options.resume()
    // What had been read already may have come at once, and was copied for that.
    turn.time = Math.max(turn.time, time + performance.now() - begun)
  }
}
