import { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { baseLimits } from './limits.ts'

/** The number of requests that arrived on one connection within one turn of the event loop. */
interface ArrivalCount { turn: number, requests: number }

const arrivals = new WeakMap<Socket, ArrivalCount>()
const floodingSockets = new WeakSet<Socket>()
let turn = 0
let isTurnKnown = false

/** The number of the current turn of the event loop, counting turns in which requests arrive. */
function currentTurn (): number {
  if (!isTurnKnown) {
    isTurnKnown = true
    setImmediate(() => {
      isTurnKnown = false
      turn++
    })
  }
  return turn
}

/** Counts a request. @returns false when the connection exceeds `baseLimits.arriving.requests` in this turn */
function countRequest (socket: Socket): boolean {
  const now = currentTurn()
  const before = arrivals.get(socket)
  if (before?.turn === now) return ++before.requests <= baseLimits.arriving.requests
  if (before === undefined) arrivals.set(socket, { turn: now, requests: 1 })
  else Object.assign(before, { turn: now, requests: 1 })
  return true
}

/** Closes a connection that sends too many requests at once. */
export function closeFloodingConnection (socket: Socket): void {
  floodingSockets.add(socket)
  socket.destroy()
}

/** Whether a connection was closed because it sent too many requests at once. */
export const wasClosedForFlooding = (socket: Socket): boolean => floodingSockets.has(socket)

/**
 * Keeps Node's parser from delivering the remaining chunks of what it has read: it does so even after the connection is
 * closed, and has no API to stop it. In a Node version where the function has another name, the rest of one read is
 * delivered.
 */
function dropChunks (socket: Socket): void {
  const { parser } = socket as { parser?: Record<string, unknown> | null }
  if (!parser) return
  for (const [key, value] of Object.entries(parser)) {
    if (typeof value !== 'function' || value.name !== 'parserOnBody') continue
    parser[key] = undefined
    // The parser is reused for another connection later, once this one is closed.
    setImmediate(() => { parser[key] = value })
  }
}

/**
 * A request as Node's HTTP server creates it, including those that Node answers itself. It counts the requests of its
 * connection in one turn of the event loop, and the chunks of its body, whether or not they are read: Node's parser
 * processes all that was read from a connection, 64 KiB, in one turn.
 */
export class ClientMessage extends IncomingMessage {
  /** Called once, when the body arrives in too many small chunks; then the connection is closed. */
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
   * Closes the connection, and keeps Node from parsing the rest of what it has read: the parser stops at a request that
   * upgrades the protocol. Node reads `upgrade` twice when the request arrives, and once more to hand the connection
   * over; the third time it is false.
   */
  #endParsing (): void {
    closeFloodingConnection(this.socket)
    let accesses = 0
    Object.defineProperty(this, 'upgrade', { get: () => ++accesses <= 2, set: () => {} })
  }

  #refuseChunks (): void {
    // Without chunked encoding, each piece is a packet that the client had to send.
    if (this.#isRefused || this.headers['transfer-encoding'] === undefined) return
    this.#isRefused = true
    this.onTinyChunks()
    dropChunks(this.socket)
    this.socket.destroy()
  }
}
