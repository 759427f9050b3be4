import type { Socket } from 'node:net'
import { STATUS_CODES } from 'node:http'
import { errors } from './list.ts'

/** The largest path and headers of one request, in bytes: a resource's URI of 2,048 characters fits, percent-encoded in any script. */
export const maxHeaderSize = 32 * 1024

/**
 * Answers what is no HTTP request, or none in time: it never becomes one that a handler sees. In the envelope, as errors of requests are.
 * @param error as Node's `clientError` event gives it
 */
export function clientError ({ code }: NodeJS.ErrnoException, socket: Socket): void {
  if (code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const error =
    code === 'HPE_HEADER_OVERFLOW'
      ? new errors.HeadersTooLarge(maxHeaderSize)
      : code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? new errors.TooSlow()
        : new errors.MalformedRequest()
  const status = error.statusCode ?? 400
  const body = JSON.stringify({ success: false, message: error.message, code: error.code })
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`
  )
  // What still arrives is not read.
  socket.destroySoon()
}
