import type { Message } from '../message.ts'
import type { MemoryMeter, Receiver } from './transport.ts'

/**
 * A kind of unsolicited output: a message that no request waits for, data that is not a message (`noise`), or 64 tiny
 * chunks that completed no message (`crumbs`).
 */
export type UnsolicitedKind = Message['kind'] | 'noise' | 'crumbs'

/** Limits the rate of unsolicited output, for one server or for all servers of a user together. */
export interface MessageRateLimiter {
  /** Counts unsolicited output. @param size in characters */
  count: (what: UnsolicitedKind, size?: number) => void
  /** The time until more output may be read, in ms; 0: now. */
  waitTime: () => number
}

/** How messages from a server are read and counted. */
export interface ReadingOptions {
  /** Counts the memory of large messages. Default: memory is not limited. */
  readonly meter?: MemoryMeter
  /** Limits unsolicited messages. Default: no limit. */
  readonly pace?: MessageRateLimiter
  /** The owner whose memory share is used for messages that answer no client's request. */
  readonly owner?: string
}

export const noRateLimit: MessageRateLimiter = { count: () => {}, waitTime: () => 0 }

/** Max notifications and answers in flight to a server; beyond that, its output is read more slowly. */
export const maxInFlight = 64
/** Pause before more output is read from a server that is slow to read what the gateway sends, in ms. */
const slowReaderWait = 20

/** Extends a rate limiter: reading also pauses while the server is slow to read answers, which accumulate here. */
export const withSlowServerPause = (
  isSlow: () => boolean, pace: MessageRateLimiter = noRateLimit
): MessageRateLimiter => ({
  count: (what, size) => { pace.count(what, size) },
  waitTime: () => pace.waitTime() || (isSlow() ? slowReaderWait : 0)
})

const sizeOf = (message: Message): number =>
  (
    message.kind === 'response' ? message.resultText ?? message.errorText ?? '' : message.paramsText
  ).length

/** Wraps a receiver so that unsolicited messages are counted by a rate limiter. */
export const createUnsolicitedCounter = (receiver: Receiver, pace: MessageRateLimiter): Receiver => ({
  message: (message, origin) => {
    const isAwaited = receiver.message(message, origin)
    if (!isAwaited) pace.count(message.kind, sizeOf(message))
    return isAwaited
  },
  failed: (id, error) => { receiver.failed(id, error) },
  paused: (id, retry) => { receiver.paused(id, retry) },
  restartSuspected: async () => { await receiver.restartSuspected?.() },
  closed: (error) => { receiver.closed(error) }
})

interface ValveOptions {
  readonly pace?: MessageRateLimiter
  /** Processes the next bytes. Must not throw. */
  readonly take: (bytes: Buffer) => void
  /** Pause and resume the source of the bytes. Bytes that have already arrived may still be pushed. */
  readonly pause: () => void
  readonly resume: () => void
}

/**
 * Sizes of the pieces in which bytes are processed: whole lines of at least `pieceSize` bytes in total, or `longPiece`
 * bytes of a longer line. A server may exceed its rate by one piece.
 */
const pieceSize = 1024
const longPiece = 16 * 1024

/** Returns the end of the piece that begins at an index. */
function pieceEnd (chunk: Buffer, at: number): number {
  const lineEnd = chunk.indexOf('\n', at + pieceSize)
  return Math.min(chunk.length, at + longPiece, lineEnd === -1 ? Infinity : lineEnd + 1)
}

/**
 * Passes on the bytes of a server in order, and holds them back while the server exceeds its rate. Meanwhile, the
 * server's socket or pipe is not read, which slows the server down.
 */
export class Valve {
  readonly #options: ValveOptions
  readonly #pace: MessageRateLimiter
  readonly #waiting: Array<Buffer | (() => void)> = []
  #isHeld = false

  constructor (options: ValveOptions) {
    this.#options = options
    this.#pace = options.pace ?? noRateLimit
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

  /** Runs a function after all bytes pushed so far have been processed. */
  runAfterPending (run: () => void): void {
    if (this.#isHeld) this.#waiting.push(run)
    else run()
  }

  /** Drops the bytes that are held back. */
  clear (): void { this.#waiting.length = 0 }

  /** Processes a chunk. Queues its rest while the rate is exceeded. @returns the wait, in ms; undefined if none */
  #pass (chunk: Buffer): number | undefined {
    for (let at = 0, end = 0; at < chunk.length; at = end) {
      end = pieceEnd(chunk, at)
      const wait = this.#pace.waitTime()
      if (wait > 0) {
        this.#waiting.unshift(chunk.subarray(at))
        return wait
      }
      this.#options.take(chunk.subarray(at, end))
    }
    return this.#pace.waitTime() || undefined
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
