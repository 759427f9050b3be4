import { isUtf8 } from 'node:buffer'
import type { IncomingHttpHeaders } from 'node:http'
import type { Transform } from 'node:stream'
import { constants, createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import type { Dispatcher } from 'undici'
import { outOfMemoryError, UpstreamError } from '../errors.ts'
import type { EventStreamParser } from '../event-stream.ts'
import { Chunks } from '../pieces.ts'
import type { CookieJar } from './cookies.ts'
import { noMeter, transportLimits, type MemoryMeter } from './transport.ts'
import { Valve, type ReadingOptions } from './valve.ts'

export interface AnswerHandlers {
  /** Decides whether the body is parsed as events, collected as text, or discarded. */
  onHead: (
    status: number,
    contentType: string,
    sessionId: string | undefined,
    location: string | undefined,
    wwwAuthenticate: string | undefined
  ) => EventStreamParser | 'collect' | 'discard'
  /** Called once the connection is open and the request is being sent. */
  onStart?: () => void
  /** Called when the answer has ended. @param text the body if it was collected. Exceptions are passed to `onError` */
  onEnd: (text: string | undefined) => void
  /** Called if there is no complete answer, but not after `abort`. @param sent whether the request may have run */
  onError: (error: Error, sent: boolean) => void
}

const unboundedReading: ReadingOptions = {}

/** Chunks below this size, in bytes, are tiny; `crumbBatch` of them in a stream count once as `crumbs`. */
const crumbSize = 64
const crumbBatch = 64

/** Reads an HTTP answer through undici's fastest interface, `dispatch`, which does not create a stream per answer. */
export class HttpAnswerReader implements Dispatcher.DispatchHandler {
  /** Where to store the cookies of the answer; undefined: they are ignored. */
  cookies: CookieJar | undefined
  readonly #handlers: AnswerHandlers
  #controller: Dispatcher.DispatchController | undefined
  #body: EventStreamParser | 'collect' | 'discard' = 'discard'
  #decoder: Transform | undefined
  /** Whether the decoder accepts no more data for now. */
  #isFull = false
  readonly #chunks = new Chunks()
  #aborted = false
  readonly #reading: ReadingOptions
  readonly #owner: string
  #account: ReturnType<MemoryMeter['openAccount']> | undefined
  /** Limits the rate at which a stream is processed. */
  #valve: Valve | undefined
  #crumbs = 0
  /** The number of `pause` calls that `resume` has not undone yet. */
  #pauses = 0

  /** @param owner the owner whose memory share the answer counts against */
  constructor (handlers: AnswerHandlers, reading = unboundedReading, owner = reading.owner ?? '') {
    this.#handlers = handlers
    this.#reading = reading
    this.#owner = owner
  }

  /** Pauses reading until `resume` has been called as often as `pause`. */
  pause (): void {
    if (this.#pauses++ > 0 || this.#aborted) return
    this.#decoder?.pause()
    this.#controller?.pause()
  }

  resume (): void {
    if (this.#pauses === 0 || --this.#pauses > 0 || this.#aborted) return
    this.#decoder?.resume()
    if (!this.#isFull) this.#controller?.resume()
  }

  abort (): void {
    this.#aborted = true
    this.#valve?.clear()
    this.#account?.close()
    this.#decoder?.destroy()
    this.#controller?.abort(new Error('aborted'))
  }

  onRequestStart (controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#aborted) controller.abort(new Error('aborted'))
    this.#handlers.onStart?.()
  }

  onResponseStart (_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    const { 'mcp-session-id': session, 'set-cookie': cookies } = headers
    if (cookies !== undefined) this.cookies?.store(cookies)
    this.#body = this.#handlers.onHead(
      status,
      (headers['content-type'] ?? '').toLowerCase(),
      typeof session === 'string' ? session : undefined,
      headers.location,
      textOf(headers['www-authenticate'])
    )
    if (headers['content-encoding'] !== undefined && this.#body !== 'discard') {
      this.#decode(decoderOf(String(headers['content-encoding'])))
    }
  }

  onResponseData (controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#decoder) { this.#take(chunk); return }
    if (this.#decoder.write(chunk)) return
    controller.pause()
    // Chunks that undici has already read still arrive.
    if (this.#isFull) return
    this.#isFull = true
    this.#decoder.once('drain', () => {
      this.#isFull = false
      if (this.#pauses === 0) controller.resume()
    })
  }

  onResponseEnd (): void {
    if (this.#decoder) this.#decoder.end()
    else this.#inOrder(() => { this.#end() })
  }

  onResponseError (_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    this.#decoder?.destroy()
    this.#inOrder(() => {
      this.#account?.close()
      if (!this.#aborted) this.#handlers.onError(error, this.#controller !== undefined)
    })
  }

  /** Runs a function after all data received so far has been processed. */
  #inOrder (run: () => void): void {
    if (this.#valve) this.#valve.runAfterPending(run)
    else run()
  }

  /** Reads the body through a decoder. The size limit applies to the decoded bytes. */
  #decode (decoder: Transform | undefined): void {
    this.#decoder = decoder
    decoder?.on('data', (chunk: Buffer) => {
      try { this.#take(chunk) } catch (error) { this.#fail(error) }
    }).on('end', () => {
      this.#inOrder(() => { this.#end() })
    }).on('error', () => { this.#fail(new SyntaxError('it cannot be decompressed')) })
  }

  #fail (error: unknown): void {
    if (this.#aborted) return
    this.abort()
    this.#handlers.onError(error instanceof Error ? error : new Error(String(error)), true)
  }

  #take (chunk: Buffer): void {
    if (this.#body === 'discard') return
    if (this.#body !== 'collect') {
      this.#valve ??= new Valve({
        pace: this.#reading.pace,
        take: this.#parse,
        pause: () => { this.pause() },
        resume: () => { this.resume() }
      })
      this.#valve.push(chunk)
      return
    }
    const size = this.#chunks.length + chunk.length
    if (size > transportLimits.message) throw new RangeError(`more than ${transportLimits.message} bytes`)
    this.#chunks.push(chunk)
    this.#reserve(size)
  }

  readonly #parse = (bytes: Buffer): void => {
    if (this.#aborted || typeof this.#body === 'string') return
    try {
      const { messageCount: messages } = this.#body
      this.#body.push(bytes)
      // The bytes completed no message: they were a part of a message, comments, empty lines or other events.
      if (this.#body.messageCount === messages) this.#countUnsolicited(bytes, this.#body.pendingSize === 0)
      this.#reserve(this.#body.pendingSize)
    } catch (error) {
      this.#fail(error)
    }
  }

  /** Counts bytes that completed no message. @param isWhole whether no event is incomplete now */
  #countUnsolicited ({ length }: Buffer, isWhole: boolean): void {
    if (isWhole) this.#reading.pace?.count('noise')
    else if (length < crumbSize && ++this.#crumbs % crumbBatch === 0) this.#reading.pace?.count('crumbs')
  }

  /** Reserves memory for what has been read so far. @throws UpstreamError if not enough memory is left */
  #reserve (size: number): void {
    if (this.#account === undefined && size < transportLimits.small) return
    this.#account ??= (this.#reading.meter ?? noMeter).openAccount(this.#owner)
    if (!this.#account.resize(size)) throw outOfMemoryError(this.#account.isOwnerLimit)
  }

  #end (): void {
    if (this.#aborted) return
    try {
      this.#handlers.onEnd(this.#body === 'collect' ? this.#text(this.#chunks.takeWhole()) : undefined)
    } catch (error) {
      this.#handlers.onError(error instanceof Error ? error : new Error(String(error)), true)
    }
    this.#account?.close()
  }

  #text (bytes: Buffer): string {
    if (!isUtf8(bytes)) throw new SyntaxError('it is not UTF-8')
    return bytes.toString()
  }
}

/** Joins the values of a repeated header into one list (RFC 9110, section 5.3). */
const textOf = (value: string | string[] | undefined): string | undefined =>
  Array.isArray(value) ? value.join(', ') : value

/** Describes a network error for operators: in most cases with the host, in some with what to check. */
export function networkFailureMessage (error: Error, url: URL): string {
  if (error instanceof UpstreamError) return error.message
  const cause = 'cause' in error && error.cause instanceof Error ? error.cause : error
  if (cause instanceof RangeError) return `the answer of ${url.host} is too large: ${cause.message}`
  const code = 'code' in cause && typeof cause.code === 'string' ? cause.code : cause.name
  switch (code) {
    case 'ECONNREFUSED': return `cannot reach ${url.host}: connection refused; is the server running?`
    // The connector's message already says why the address is refused.
    case 'OUTBOUND_REFUSED': return cause.message
    case 'UND_ERR_HEADERS_OVERFLOW': return `the headers of ${url.host} are too large`
    case 'ENOTFOUND': return `cannot reach ${url.host}: no such host`
    case 'EAI_AGAIN': return `cannot reach ${url.host}: the name could not be looked up`
    case 'UND_ERR_CONNECT_TIMEOUT': return `cannot reach ${url.host}: no connection in time`
    case 'UND_ERR_SOCKET': case 'ECONNRESET': case 'EPIPE': return `${url.host} closed the connection`
    case 'ERR_SSL_WRONG_VERSION_NUMBER': case 'ERR_SSL_PACKET_LENGTH_TOO_LONG':
      return `${url.host} does not use TLS: should its address begin with http:// instead of https://?`
    case 'DEPTH_ZERO_SELF_SIGNED_CERT': case 'SELF_SIGNED_CERT_IN_CHAIN': case 'UNABLE_TO_VERIFY_LEAF_SIGNATURE':
    case 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY':
      return `the certificate of ${url.host} is from an unknown authority (${code}): set NODE_EXTRA_CA_CERTS to a ` +
        'file with the authority\'s certificate'
    case 'UND_ERR_INVALID_ARG': case 'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH': case 'UND_ERR_NOT_SUPPORTED':
      return `the request to ${url.host} cannot be sent (${cause.message}); check "headers"`
    default: return `the connection to ${url.host} failed: ${code}`
  }
}

/** Options that accept truncated data: some servers do not finish a compressed stream. */
const lenientOptions = { flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH }

/**
 * Creates the decoder for a `content-encoding`; undefined if the content is not encoded.
 * @throws SyntaxError for unknown encodings, and for several encodings at once, which could exhaust the CPU
 */
export function decoderOf (encoding: string | undefined): Transform | undefined {
  switch (encoding?.trim().toLowerCase()) {
    case undefined: case '': case 'identity': return undefined
    // Some servers state the charset in this header.
    case 'utf-8': case 'utf8': case 'iso-8859-1': case 'us-ascii': case 'none': return undefined
    case 'gzip': case 'x-gzip': return createGunzip(lenientOptions)
    case 'deflate': return createInflate(lenientOptions)
    case 'br': return createBrotliDecompress(
      { flush: constants.BROTLI_OPERATION_FLUSH, finishFlush: constants.BROTLI_OPERATION_FLUSH }
    )
    default: throw new SyntaxError('its content-encoding is not one of gzip, deflate and br')
  }
}
