import { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { baseLimits } from './limits.ts'

/** The requests that came on one connection within one turn of the event loop. */
interface Arrived { turn: number, requests: number }

const arrived = new WeakMap<Socket, Arrived>()
const crowded = new WeakSet<Socket>()
let turn = 0
let isTurnKnown = false

/** The number of this turn of the event loop, among those in which requests arrive. */
function turnNow (): number {
  if (!isTurnKnown) {
    isTurnKnown = true
    setImmediate(() => {
      isTurnKnown = false
      turn++
    })
  }
  return turn
}

/** @returns false: more requests came on the connection within this turn than `baseLimits.arriving` lets */
function countRequest (socket: Socket): boolean {
  const now = turnNow()
  const before = arrived.get(socket)
  if (before?.turn === now) return ++before.requests <= baseLimits.arriving.requests
  if (before === undefined) arrived.set(socket, { turn: now, requests: 1 })
  else Object.assign(before, { turn: now, requests: 1 })
  return true
}

/** Closes a connection that brings too many requests at once. */
export function closeCrowded (socket: Socket): void {
  crowded.add(socket)
  socket.destroy()
}

/** Whether a connection was closed since it brought too many requests at once. */
export const wasCrowded = (socket: Socket): boolean => crowded.has(socket)

/**
 * Keeps Node's parser from handing over the rest of the chunks that it has read. Node has no interface for that, and
 * does so even where the connection is closed. Where a later Node calls the function by another name, the rest of one
 * read is handed over.
 */
function dropChunks (socket: Socket): void {
  const { parser } = socket as { parser?: Record<string, unknown> | null }
  if (!parser) return
  for (const [key, value] of Object.entries(parser)) {
    if (typeof value !== 'function' || value.name !== 'parserOnBody') continue
    parser[key] = undefined
    // Another connection gets the parser, once this one is closed: that is later.
    setImmediate(() => { parser[key] = value })
  }
}

/**
 * A request of a client, as Node's HTTP server makes it, also one that Node answers itself. Counted are the requests of
 * its connection in one turn of the event loop, and the chunks of its body, whether or not anybody reads them: Node's
 * parser runs through all that was read of a connection, 64 KiB, in one turn.
 */
export class ClientMessage extends IncomingMessage {
  /** Called once, when the body comes in too many small chunks; the connection is closed after that. */
  onTinyChunks: () => void = () => {}
  #chunks = 0
  #bytes = 0
  #isRefused = false

  constructor (socket: Socket) {
    super(socket)
    if (!countRequest(socket)) this.#endParsing()
  }

  override push (chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    if (chunk !== null) {
      this.#bytes += chunk.length
      if (++this.#chunks > baseLimits.arriving.chunks && this.#bytes < this.#chunks * baseLimits.arriving.chunk) {
        this.#refuseChunks()
      }
    }
    return super.push(chunk, encoding)
  }

  /**
   * Closes the connection, and keeps Node from parsing the rest of what it has read of it: the parser ends with a
   * request that changes the protocol. Node asks twice whether this is one, as it arrives, and later once more, for
   * somebody to hand the connection to.
   */
  #endParsing (): void {
    closeCrowded(this.socket)
    let asked = 0
    Object.defineProperty(this, 'upgrade', { get: () => ++asked <= 2, set: () => {} })
  }

  #refuseChunks (): void {
    // Without chunks, each piece is a packet that the client had to send.
    if (this.#isRefused || this.headers['transfer-encoding'] === undefined) return
    this.#isRefused = true
    this.onTinyChunks()
    dropChunks(this.socket)
    this.socket.destroy()
  }
}
