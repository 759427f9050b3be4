import type { ServerResponse } from 'node:http'
import fp from 'fastify-plugin'
import { limits } from './index.ts'

const readers = new Set<Unread>()
/** What all readers have left unread, as it was last counted. */
let all = 0

/** What one client has not read yet of an answer that is written. All together is bounded: beyond, the connection that most is left on is dropped. */
export class Unread {
  readonly #raw: ServerResponse
  #bytes = 0

  constructor (raw: ServerResponse) {
    this.#raw = raw
    readers.add(this)
    raw.once('close', () => { this.#forget() })
  }

  /** Counts what is unread now, in bytes. */
  count (): number {
    if (!readers.has(this)) return 0
    const { writableLength } = this.#raw
    all += writableLength - this.#bytes
    this.#bytes = writableLength
    return writableLength
  }

  /** Counts what has just been written, and makes room where that is too much. */
  add (): void {
    this.count()
    if (all <= limits.unread) return
    const [slowest] = [...readers].sort((a, b) => b.count() - a.count())
    if (slowest && all > limits.unread) slowest.drop()
  }

  /** Hangs up. */
  drop (): void {
    this.#forget()
    this.#raw.destroy()
  }

  #forget (): void {
    if (readers.delete(this)) all -= this.#bytes
  }
}

/** A smaller answer goes to the system at once, or is not worth counting. */
export const worthCounting = 64 * 1024

/** Counts the large answers of all routes that Fastify answers. */
export default fp(async (app) => {
  app.addHook('onSend', (_request, reply, payload, done) => {
    if ((typeof payload === 'string' || Buffer.isBuffer(payload)) && payload.length > worthCounting) {
      const unread = new Unread(reply.raw)
      setImmediate(() => { unread.add() })
    }
    done(null, payload)
  })
}, { name: 'unread' })
