import type { IncomingMessage, ServerResponse } from 'node:http'
import { errors, refuseConnection } from '../errors/index.ts'
import { ClientMessage, baseLimits } from '../limits/index.ts'

const { chunks, chunk } = baseLimits.arriving

/**
 * Bounds what is read of the body of a request: its small chunks, and the rest once it was answered. To be called as it
 * arrives.
 */
export function boundBody (request: IncomingMessage, response: ServerResponse): void {
  const { 'transfer-encoding': encoding, 'content-length': length = '0' } = request.headers
  // Node reads and drops the rest of a small body by itself. A listener for each request would cost a fifth of a call's
  // CPU time.
  if (encoding === undefined && Number(length) <= baseLimits.smallBody) return
  if (request instanceof ClientMessage) {
    const { socket } = request
    request.onTinyChunks = () => {
      // Its answer has not begun, and waits for no other one.
      if (response.socket === socket && !response.headersSent) {
        refuseConnection(new errors.TinyChunks(chunks, chunk), socket)
      }
    }
  }
  // The body has a reader from now on: what nobody had asked for, Node would throw away once the answer is sent, unseen
  // and without bound.
  request.read(0)
  response.once('close', () => { endUnread(request) })
}

/**
 * Ends a request that was answered before its body had arrived: some of the rest is read and thrown away, so that the
 * client gets to see the answer, then the connection is closed.
 */
function endUnread (request: IncomingMessage): void {
  if (request.readableEnded || request.destroyed) return
  if (!request.complete) {
    const { unread, unreadChunks, linger } = baseLimits.arriving
    const isChunked = request.headers['transfer-encoding'] !== undefined
    let bytes = 0
    let count = 0
    const end = setTimeout(() => { if (!request.complete) request.destroy() }, linger)
    request.once('end', () => { clearTimeout(end) })
    request.once('close', () => { clearTimeout(end) })
    request.unpipe()
    request.on('data', (piece: Buffer) => {
      bytes += piece.length
      // Without reads the TCP window closes, and the client cannot send more.
      if (bytes > unread || (isChunked && ++count > unreadChunks)) request.pause()
    })
  }
  request.resume()
}

/**
 * Takes a request out of Node's check for slow requests (`requestTimeout`), which has one time for all. The caller
 * bounds the time itself. Node has no interface for that: the parser of the connection leaves the list that is checked,
 * and is back on it with the next request. Without that list in a later Node, the usual time applies.
 */
export function mayBeSlow ({ socket }: IncomingMessage): void {
  const { parser } = socket as { parser?: { remove?: unknown } | null }
  if (typeof parser?.remove === 'function') parser.remove()
}
