import type { IncomingMessage, ServerResponse } from 'node:http'
import { baseLimits } from '../limits/index.ts'

/** Limits how much of a request's body is read after the answer was sent. Call it when the request arrives. */
export function limitUnreadBody (request: IncomingMessage, response: ServerResponse): void {
  const { 'transfer-encoding': encoding, 'content-length': length = '0' } = request.headers
  // Node drops the rest of a small body itself. Most requests have one, and a listener would cost CPU time in each.
  if (encoding === undefined && Number(length) <= baseLimits.smallBody) return
  // Starts reading: after the answer, Node would read and drop a body that has no reader, without limit.
  request.read(0)
  response.once('close', () => { drainUnreadBody(request) })
}

/**
 * Handles a request that was answered before its body arrived: reads and drops part of the rest, so that the client can
 * receive the answer, then closes the connection.
 */
function drainUnreadBody (request: IncomingMessage): void {
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
      // Once reading stops, the TCP window closes, and the client cannot send more.
      if (bytes > unread || (isChunked && ++count > unreadChunks)) request.pause()
    })
  }
  request.resume()
}
