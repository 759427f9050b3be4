import type { ServerResponse } from 'node:http'
import fp from 'fastify-plugin'
import { limits } from './index.ts'

const readers = new Set<Unread>()
/** Unread bytes of all readers, as of their last count. */
let total = 0

/**
 * The bytes of one HTTP answer that its client has not read yet. Their sum over all answers is bounded by `limits.unread`: beyond it,
 * the connection with the most unread bytes is closed.
 */
export class Unread {
  readonly #raw: ServerResponse
  #bytes = 0

  constructor (raw: ServerResponse) {
    this.#raw = raw
    readers.add(this)
    raw.once('close', () => { this.#forget() })
  }

  /** Updates the count. @returns the unread bytes of this answer */
  count (): number {
    if (!readers.has(this)) return 0
    const { writableLength } = this.#raw
    total += writableLength - this.#bytes
    this.#bytes = writableLength
    return writableLength
  }

  /** Updates the count after a write, and closes the slowest reader's connection when the sum is too large. */
  add (): void {
    this.count()
    if (total <= limits.unread) return
    const [slowest] = [...readers].sort((a, b) => b.count() - a.count())
    // Counting the others may have found that they were read meanwhile.
    if (slowest && total > limits.unread) slowest.drop()
  }

  /** Closes the connection. */
  drop (): void {
    this.#forget()
    this.#raw.destroy()
  }

  #forget (): void {
    if (readers.delete(this)) total -= this.#bytes
  }
}

/** Answers up to this size, in bytes, go into the socket's buffers at once, or are too small to be counted. */
export const worthCounting = 64 * 1024

/** Counts the large answers of all routes whose answers Fastify sends. */
export default fp(async (app) => {
  app.addHook('onSend', (_request, reply, payload, done) => {
    if ((typeof payload === 'string' || Buffer.isBuffer(payload)) && payload.length > worthCounting) {
      const unread = new Unread(reply.raw)
      setImmediate(() => { unread.add() })
    }
    done(null, payload)
  })
}, { name: 'unread' })
