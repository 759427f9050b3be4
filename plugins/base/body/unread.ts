import type { IncomingMessage, ServerResponse } from 'node:http'
import { baseLimits } from '../limits/index.ts'

/** Limits how much of a request's body is read after the response has ended. Call it when the request arrives. */
export function limitUnreadBody (request: IncomingMessage, response: ServerResponse): void {
  const { 'transfer-encoding': encoding, 'content-length': length = '0' } = request.headers
  // Most requests have a small body or none. Node drops the rest of a small one, and the listener would cost CPU time.
  if (encoding === undefined && Number(length) <= baseLimits.smallBody) return
  // Starts reading: if nobody has begun to read a body, Node reads and drops all of it after the response.
  request.read(0)
  response.once('close', () => { drainUnreadBody(request) })
}

/**
 * Handles a request that was answered before its whole body arrived: reads and drops the rest up to a limit, so that
 * the client can receive the response. Closes the connection if the rest has not arrived within `linger`.
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
