import { isUtf8 } from 'node:buffer'
import type { IncomingHttpHeaders } from 'node:http'
import type { Transform } from 'node:stream'
import type { Dispatcher } from 'undici'
import { UpstreamError } from '../errors.ts'
import type { EventStreamParser } from '../event-stream.ts'
import { decoderOf } from './decode.ts'
import { noMeter, transportLimits, type MemoryMeter } from './transport.ts'

export interface AnswerHandlers {
  /** Decides what happens to the body: it is parsed as events, collected as text, or discarded. */
  onHead: (
    status: number,
    contentType: string,
    sessionId: string | undefined,
    location: string | undefined,
    wwwAuthenticate: string | undefined
  ) => EventStreamParser | 'collect' | 'discard'
  /** Called with the text of a collected body, else with undefined. Its exceptions go to `onError`. */
  onEnd: (text: string | undefined) => void
  /** Not called after `abort`. @param sent the request was already being sent, so it may have run */
  onError: (error: Error, sent: boolean) => void
}

/** One HTTP answer, read by undici's lowest interface: a stream object per call would cost more than the call. */
export class Answer implements Dispatcher.DispatchHandler {
  readonly #handlers: AnswerHandlers
  #controller: Dispatcher.DispatchController | undefined
  #body: EventStreamParser | 'collect' | 'discard' = 'discard'
  #decoder: Transform | undefined
  #chunks: Buffer[] = []
  #size = 0
  #aborted = false
  readonly #meter: MemoryMeter
  #account: ReturnType<MemoryMeter['open']> | undefined

  /** @param meter counts the memory of large answers */
  constructor (handlers: AnswerHandlers, meter = noMeter) {
    this.#handlers = handlers
    this.#meter = meter
  }

  abort (): void {
    this.#aborted = true
    this.#account?.close()
    this.#decoder?.destroy()
    this.#controller?.abort(new Error('aborted'))
  }

  onRequestStart (controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#aborted) controller.abort(new Error('aborted'))
  }

  onResponseStart (_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    const session = headers['mcp-session-id']
    this.#body = this.#handlers.onHead(
      status,
      (headers['content-type'] ?? '').toLowerCase(),
      typeof session === 'string' ? session : undefined,
      headers.location,
      textOf(headers['www-authenticate'])
    )
    if (headers['content-encoding'] !== undefined && this.#body !== 'discard') this.#decode(decoderOf(String(headers['content-encoding'])))
  }

  onResponseData (controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#decoder) { this.#take(chunk); return }
    if (this.#decoder.write(chunk)) return
    controller.pause()
    this.#decoder.once('drain', () => { controller.resume() })
  }

  onResponseEnd (): void {
    if (this.#decoder) this.#decoder.end()
    else this.#end()
  }

  onResponseError (_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    this.#decoder?.destroy()
    this.#account?.close()
    if (!this.#aborted) this.#handlers.onError(error, this.#controller !== undefined)
  }

  /** Reads the body through a decoder. The bound on its size applies to the decoded bytes. */
  #decode (decoder: Transform | undefined): void {
    this.#decoder = decoder
    decoder?.on('data', (chunk: Buffer) => {
      try { this.#take(chunk) } catch (error) { this.#fail(error) }
    }).on('end', () => { this.#end() }).on('error', () => { this.#fail(new SyntaxError('it cannot be decompressed')) })
  }

  #fail (error: unknown): void {
    if (this.#aborted) return
    this.abort()
    this.#handlers.onError(error instanceof Error ? error : new Error(String(error)), true)
  }

  #take (chunk: Buffer): void {
    if (this.#body === 'discard') return
    if (this.#body !== 'collect') {
      this.#body.push(chunk)
      this.#hold(this.#body.pending)
      return
    }
    this.#size += chunk.length
    if (this.#size > transportLimits.message) throw new RangeError(`more than ${transportLimits.message} bytes`)
    this.#chunks.push(chunk)
    this.#hold(this.#size)
  }

  /** Counts what is read so far. @throws UpstreamError when there is no memory left for it */
  #hold (size: number): void {
    if (this.#account === undefined && size < transportLimits.small) return
    this.#account ??= this.#meter.open()
    if (!this.#account.resize(size)) {
      throw new UpstreamError('no-room', 'the gateway has no memory left for its answer; try again later', { isPublic: true })
    }
  }

  #end (): void {
    if (this.#aborted) return
    try {
      this.#handlers.onEnd(this.#body === 'collect' ? this.#text() : undefined)
    } catch (error) {
      this.#handlers.onError(error instanceof Error ? error : new Error(String(error)), true)
    } finally {
      this.#account?.close()
    }
  }

  #text (): string {
    const bytes = this.#chunks.length === 1 && this.#chunks[0] ? this.#chunks[0] : Buffer.concat(this.#chunks)
    if (!isUtf8(bytes)) throw new SyntaxError('it is not UTF-8')
    return bytes.toString()
  }
}

/** Headers that are sent several times are one list (RFC 9110 §5.3). */
const textOf = (value: string | string[] | undefined): string | undefined => Array.isArray(value) ? value.join(', ') : value

/** A network error as a sentence for the operator: the host, and what to check. */
export function networkFailure (error: Error, url: URL): string {
  if (error instanceof UpstreamError) return error.message
  const cause = 'cause' in error && error.cause instanceof Error ? error.cause : error
  const code = 'code' in cause && typeof cause.code === 'string' ? cause.code : cause.name
  switch (code) {
    case 'ECONNREFUSED': return `cannot reach ${url.host}: connection refused; is the server running?`
    // The connector's message already says why an address is refused.
    case 'OUTBOUND_REFUSED': return cause.message
    case 'UND_ERR_HEADERS_OVERFLOW': return `the headers of ${url.host} are too large`
    case 'ENOTFOUND': return `cannot reach ${url.host}: no such host`
    case 'EAI_AGAIN': return `cannot reach ${url.host}: the name could not be looked up`
    case 'UND_ERR_CONNECT_TIMEOUT': return `cannot reach ${url.host}: no connection in time`
    case 'UND_ERR_SOCKET': case 'ECONNRESET': case 'EPIPE': return `${url.host} closed the connection`
    default: return `cannot talk to ${url.host}: ${code}`
  }
}
