import type { Socket } from 'node:net'
import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http'
import type { FastifyError } from 'fastify'
import { errors } from './list.ts'
import { baseLimits } from '../limits/index.ts'

/**
 * Max size of a request's URL and headers together, in bytes. A percent-encoded resource URI of 2,048 characters fits.
 */
export const maxHeaderSize = 32 * 1024

/**
 * An error, and the body members that contain its code: `error` on tool routes, otherwise `code`; both if the path is
 * unknown.
 */
interface HeadError { error: FastifyError, members: readonly string[] }

/** An error of Node's `clientError` event. */
interface ClientError extends NodeJS.ErrnoException { bytesParsed?: number, rawPacket?: unknown }

/** For each connection, the request on it that is exempt from `requestTimeout`. */
const exemptRequests = new WeakMap<Socket, IncomingMessage>()

/**
 * Exempts a request from Node's `requestTimeout`, which is the same for all requests; the caller must limit the time.
 * When the request exceeds the timeout, Node emits one `clientError`, which `createClientErrorHandler` ignores.
 */
export function exemptFromRequestTimeout (request: IncomingMessage): void {
  exemptRequests.set(request.socket, request)
}

/**
 * Creates a handler of Node's `clientError`. It answers requests that reach no route: those that are not valid HTTP,
 * have too large a head, or do not arrive in time. For too large a head, the body has the error format of the requested
 * path.
 */
export const createClientErrorHandler = (basePath: string) => (error: ClientError, socket: Socket): void => {
  const { code } = error
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT' && exemptRequests.get(socket)?.complete === false) return
  if (code === 'ECONNRESET' || !socket.writable || hasBegunAnswer(socket)) {
    socket.destroy()
    return
  }
  if (code !== 'HPE_HEADER_OVERFLOW') {
    refuseConnection(code === 'ERR_HTTP_REQUEST_TIMEOUT' ? new errors.TooSlow() : new errors.MalformedRequest(), socket)
    return
  }
  const given = headTooLarge(error, basePath)
  linger(socket)
  respond(given.error, socket, given.members)
}

/**
 * Whether the response to an earlier, pipelined request is being sent: another response would end up inside it. Node's
 * own handler of `clientError` makes the same check.
 */
const hasBegunAnswer = (socket: Socket & { _httpMessage?: ServerResponse | null }): boolean =>
  socket._httpMessage?.headersSent === true

/**
 * Creates the error for a request head that is too large because of its URL or its headers. If the head arrived in
 * several packets, only the last one is available; a packet without spaces and line breaks is taken as part of the URL.
 */
function headTooLarge ({ rawPacket, bytesParsed }: ClientError, basePath: string): HeadError {
  const text = Buffer.isBuffer(rawPacket)
    ? rawPacket.toString('latin1', 0, bytesParsed ?? 2 * maxHeaderSize).trimStart()
    : ''
  const [, method, address = '', after] = /^([A-Z]+) ([^ \r\n]*)(.?)/.exec(text) ?? []
  // A URL that takes more than half of the limit is the cause.
  const isAddress = method === undefined ? /^[!-~]+$/.test(text) : after === '' || address.length > maxHeaderSize / 2
  const path = address.split('?', 1)[0] ?? ''
  const isTool = isToolPath(path, basePath)
  const members = isTool ? ['error'] : method === undefined ? ['error', 'code'] : ['code']
  if (!isAddress) return { error: new errors.HeadersTooLarge(maxHeaderSize), members }
  return { error: new errors.AddressTooLong(maxHeaderSize, adviceFor(method, path, isTool)), members }
}

/** Returns advice for a URL that is too long (414). @param method undefined: only the end of the URL is known */
function adviceFor (method: string | undefined, path: string, isTool: boolean): string {
  if (method === undefined) return 'tools also accept their arguments as a JSON body, with POST to the same path'
  if (!isTool) return 'send a shorter one'
  return method === 'POST'
    ? 'send all arguments in the body'
    : `send the arguments as a JSON body with POST ${path.slice(0, 300)}`
}

/** Whether a path calls a tool (`routes/open/tools.ts`). */
function isToolPath (path: string, basePath: string): boolean {
  return path.startsWith(`${basePath}/api/`) &&
    /^(?:[^/]+\/)?tools\/(?!call\/)[^/]+\/[^/]+\/?$/.test(path.slice(basePath.length + 5))
}

/**
 * Reads and drops the data that still arrives, so that the client can receive the response. Closes the connection after
 * the time or the number of bytes in `baseLimits.arriving`.
 */
function linger (socket: Socket): void {
  const { unread, linger: time } = baseLimits.arriving
  let left = unread
  // The parser has failed and accepts no more data.
  socket.removeAllListeners('data')
  socket.on('data', (piece: Buffer) => { if ((left -= piece.length) < 0) socket.destroy() })
  const end = setTimeout(() => { socket.destroy() }, time)
  socket.once('close', () => { clearTimeout(end) })
}

/** Answers a request with an error, and closes the connection. */
function refuseConnection (error: FastifyError, socket: Socket): void {
  respond(error, socket)
  // The data that still arrives is not read.
  socket.destroySoon()
}

/** Writes an answer, and half-closes the connection. @param members the body members that contain the code */
function respond (
  { statusCode: status = 400, message, code }: FastifyError, socket: Socket, members: readonly string[] = ['code']
): void {
  const body = JSON.stringify({ success: false, message, ...Object.fromEntries(members.map((name) => [name, code])) })
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close'
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}
