import type { Socket } from 'node:net'
import { STATUS_CODES } from 'node:http'
import type { FastifyError } from 'fastify'
import { errors } from './list.ts'

/** Max size of the path and headers of one request, in bytes. A resource URI of 2,048 characters of any script fits, percent-encoded. */
export const maxHeaderSize = 32 * 1024

/**
 * Answers a connection whose data is not a valid HTTP request, or did not arrive in time, and so reaches no handler. The body is the
 * envelope of other errors.
 * @param error of Node's `clientError` event
 */
export function clientError ({ code }: NodeJS.ErrnoException, socket: Socket): void {
  if (code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  refuseConnection(toHttpError(code), socket)
}

/** Answers the request that is arriving on a connection, whose answer has not begun, with an error, and closes the connection. */
export function refuseConnection (error: FastifyError, socket: Socket): void {
  const status = error.statusCode ?? 400
  const body = JSON.stringify({ success: false, message: error.message, code: error.code })
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close'
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
  // Data that still arrives is not read.
  socket.destroySoon()
}

function toHttpError (code: string | undefined): FastifyError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW': return new errors.HeadersTooLarge(maxHeaderSize)
    case 'ERR_HTTP_REQUEST_TIMEOUT': return new errors.TooSlow()
    default: return new errors.MalformedRequest()
  }
}
