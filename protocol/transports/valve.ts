import type { Message } from '../message.ts'
import type { MemoryMeter, Receiver } from './transport.ts'

/**
 * Unsolicited output of a server: a message that no request waits for, text that is no message, or many pieces of a few
 * bytes each.
 */
export type Unsolicited = Message['kind'] | 'noise' | 'crumbs'

/** Bounds the unsolicited output of servers. The gateway bounds the sum of all servers of one user. */
export interface MessagePace {
  /** @param size in characters */
  count: (what: Unsolicited, size?: number) => void
  /** Time until more output is taken, in ms; 0: now. */
  wait: () => number
}

/** How the messages of a server are read and counted. */
export interface ReadingOptions {
  /** Counts the memory of large ones. Default: not counted. */
  readonly meter?: MemoryMeter
  /** Bounds the unsolicited ones. Default: without bounds. */
  readonly pace?: MessagePace
  /** The owner of those that no client causes. */
  readonly owner?: string
}

/** Without bounds. */
export const noPace: MessagePace = { count: () => {}, wait: () => 0 }

/** Max notifications and answers on their way to a server; beyond: its output is read more slowly. */
export const maxInFlight = 64
/** How long the output of such a server is not read, in ms. */
const slowReaderWait = 20

/** A pace that also waits while a server is slow to take our answers, so that they do not pile up here. */
export const waitingWhile = (isSlow: () => boolean, pace: MessagePace = noPace): MessagePace => ({
  count: (what, size) => { pace.count(what, size) },
  wait: () => pace.wait() || (isSlow() ? slowReaderWait : 0)
})

const sizeOf = (message: Message): number =>
  (message.kind === 'response' ? message.resultText ?? message.errorText ?? '' : message.paramsText).length

/** The same receiver, with its unsolicited messages counted. */
export const counting = (receiver: Receiver, pace: MessagePace): Receiver => ({
  message: (message, origin) => {
    const isAwaited = receiver.message(message, origin)
    if (!isAwaited) pace.count(message.kind, sizeOf(message))
    return isAwaited
  },
  failed: (id, error) => { receiver.failed(id, error) },
  paused: (id, retry) => { receiver.paused(id, retry) },
  doubted: () => { receiver.doubted?.() },
  closed: (error) => { receiver.closed(error) }
})

interface ValveOptions {
  readonly pace?: MessagePace
  /** Takes the next bytes. Never throws. */
  readonly take: (bytes: Buffer) => void
  /** Stop and continue the source of the bytes. Bytes that have arrived already may still be pushed. */
  readonly pause: () => void
  readonly resume: () => void
}

/**
 * Bytes that are taken at once: a few messages, by which a server may exceed its pace; of a longer line up to
 * `longPiece`.
 */
const pieceSize = 1024
const longPiece = 16 * 1024

function pieceEnd (chunk: Buffer, at: number): number {
  const lineEnd = chunk.indexOf('\n', at + pieceSize)
  return Math.min(chunk.length, at + longPiece, lineEnd === -1 ? Infinity : lineEnd + 1)
}

/**
 * Passes on the bytes that a server sends, in order, and holds them back while they exceed the server's pace. The
 * server then waits, as its socket or pipe is not read.
 */
export class Valve {
  readonly #options: ValveOptions
  readonly #pace: MessagePace
  readonly #waiting: Array<Buffer | (() => void)> = []
  #isHeld = false

  constructor (options: ValveOptions) {
    this.#options = options
    this.#pace = options.pace ?? noPace
  }

  push (chunk: Buffer): void {
    if (this.#isHeld) {
      this.#waiting.push(chunk)
      return
    }
    const wait = this.#pass(chunk)
    if (wait === undefined) return
    this.#isHeld = true
    this.#options.pause()
    this.#continueIn(wait)
  }

  /** Runs something once all that came before is taken. */
  then (run: () => void): void {
    if (this.#isHeld) this.#waiting.push(run)
    else run()
  }

  /** Drops the waiting bytes. */
  clear (): void { this.#waiting.length = 0 }

  /**
   * Takes a chunk, or the beginning of it: the rest then waits.
   * @returns the time until more is taken, in ms; undefined: none
   */
  #pass (chunk: Buffer): number | undefined {
    for (let at = 0, end = 0; at < chunk.length; at = end) {
      end = pieceEnd(chunk, at)
      const wait = this.#pace.wait()
      if (wait > 0) {
        this.#waiting.unshift(chunk.subarray(at))
        return wait
      }
      this.#options.take(chunk.subarray(at, end))
    }
    return this.#pace.wait() || undefined
  }

  #continueIn (wait: number): void { setTimeout(this.#continue, wait).unref() }

  readonly #continue = (): void => {
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      if (typeof next === 'function') {
        next()
        continue
      }
      const wait = this.#pass(next)
      if (wait === undefined) continue
      this.#continueIn(wait)
      return
    }
    this.#isHeld = false
    this.#options.resume()
  }
}
