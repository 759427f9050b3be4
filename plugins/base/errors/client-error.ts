import type { Socket } from 'node:net'
import { STATUS_CODES } from 'node:http'
import type { FastifyError } from 'fastify'
import { limits } from '../limits/index.ts'
import { errors } from './list.ts'

/** Max size of the path and headers of one request, in bytes. A resource URI of 2,048 characters of any script fits, percent-encoded. */
export const maxHeaderSize = 32 * 1024

/** An error, and the members of its body that hold the code: `error` on the routes of tools, `code` elsewhere. */
interface Refusal { error: FastifyError, members: readonly string[] }

/** An error of Node's `clientError` event. */
interface ClientError extends NodeJS.ErrnoException { bytesParsed?: number, rawPacket?: unknown }

/**
 * Answers a connection whose data is not a valid HTTP request, or did not arrive in time, and so reaches no handler. The body is that of
 * other errors at its path, where the path is known.
 */
export const clientError = (basePath: string) => (error: ClientError, socket: Socket): void => {
  const { code } = error
  if (code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  if (code !== 'HPE_HEADER_OVERFLOW') {
    refuseConnection(toHttpError(code), socket)
    return
  }
  const given = tooLong(error, basePath)
  linger(socket)
  respond(given.error, socket, given.members)
}

/**
 * The error for a request whose head is too large: the address alone may be. Of one that came in several packets only the last is known,
 * where an address that goes on is told by having no spaces and lines.
 */
function tooLong ({ rawPacket, bytesParsed }: ClientError, basePath: string): Refusal {
  const text = Buffer.isBuffer(rawPacket) ? rawPacket.toString('latin1', 0, bytesParsed ?? 2 * maxHeaderSize).trimStart() : ''
  const [, method, address = '', after] = /^([A-Z]+) ([^ \r\n]*)(.?)/.exec(text) ?? []
  // An address that takes most of the room is at fault, be it complete or not.
  const isAddress = method === undefined ? /^[!-~]+$/.test(text) : after === '' || address.length > maxHeaderSize / 2
  const path = address.split('?', 1)[0] ?? ''
  const isTool = isToolPath(path, basePath)
  const members = isTool ? ['error'] : method === undefined ? ['error', 'code'] : ['code']
  if (!isAddress) return { error: new errors.HeadersTooLarge(maxHeaderSize), members }
  const how = !isTool
    ? 'a tool takes its arguments as a JSON body as well, with POST at the same path'
    : method === 'POST' ? 'send all arguments in the body' : `send the arguments as a JSON body, with POST ${path.slice(0, 300)}`
  return { error: new errors.AddressTooLong(maxHeaderSize, how), members }
}

/** Whether a tool is called at this path, by GET and POST (`routes/open/tools.ts`). */
function isToolPath (path: string, basePath: string): boolean {
  return path.startsWith(`${basePath}/api/`) && /^(?:[^/]+\/)?tools\/(?!call\/)[^/]+\/[^/]+\/?$/.test(path.slice(basePath.length + 5))
}

/** Reads and drops some of what still arrives, so that the client gets to see the answer, and closes the connection then. */
function linger (socket: Socket): void {
  const { unread, linger: time } = limits.arriving
  let left = unread
  // The parser takes nothing more: it has failed.
  socket.removeAllListeners('data')
  socket.on('data', (piece: Buffer) => { if ((left -= piece.length) < 0) socket.destroy() })
  const end = setTimeout(() => { socket.destroy() }, time)
  socket.once('close', () => { clearTimeout(end) })
}

/** Answers the request that is arriving on a connection, whose answer has not begun, with an error, and closes the connection. */
export function refuseConnection (error: FastifyError, socket: Socket): void {
  respond(error, socket)
  // Data that still arrives is not read.
  socket.destroySoon()
}

/** Writes an answer and ends the connection. @param members those that hold the code */
function respond ({ statusCode: status = 400, message, code }: FastifyError, socket: Socket, members: readonly string[] = ['code']): void {
  const body = JSON.stringify({ success: false, message, ...Object.fromEntries(members.map((name) => [name, code])) })
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close'
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}

function toHttpError (code: string | undefined): FastifyError {
  switch (code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT': return new errors.TooSlow()
    default: return new errors.MalformedRequest()
  }
}
