import type { ServerResponse } from 'node:http'
import { eventText } from '../../protocol/event-stream.ts'
import { largeTextLength } from '../../protocol/text.ts'
import { onceClosed, pacedReply, UnreadReply, maxUncountedReply } from '../base/limits/index.ts'
import type { AcceptedTypes } from './accept.ts'
import { EventStream } from './event-stream.ts'
import type { ReplyChannel, ReplyStream } from './reply-channel.ts'
import { downstreamLimits } from './limits.ts'

/**
 * Time in ms after which a response becomes an event stream if there is no answer yet, so that no proxy closes the
 * silent connection.
 */
const silenceTimeout = 5_000

interface HttpReplyOptions {
  accepted: AcceptedTypes
  /** The number of answers that the response will contain, including those that are cancelled. */
  expected: number
  /** Whether the answers belong to a JSON-RPC batch. */
  isBatch: boolean
  /** Whether the client can poll a closed stream (SEP-1699). */
  canPoll: boolean
  newStream: () => ReplyStream
  /** Called when the client has disconnected and will not fetch the answer. */
  onGone: () => void
}

/**
 * The HTTP response to one POST: JSON, or an event stream. If the client accepts event streams, the response becomes
 * one as soon as a message other than an answer is sent, after `silenceTimeout`, or at once if the client prefers event
 * streams. A client may disconnect from the stream and resume it.
 */
export class HttpReply implements ReplyChannel {
  readonly #raw: ServerResponse
  readonly #options: HttpReplyOptions
  readonly #answers: Array<ReadonlyArray<string | Buffer>> = []
  #expected: number
  /** The size of the answers that wait for the rest of their batch, in characters or bytes. */
  #heldSize = 0
  #unread: UnreadReply | undefined
  #stream: ReplyStream | undefined
  #timer: NodeJS.Timeout | undefined
  #over = false

  constructor (raw: ServerResponse, options: HttpReplyOptions) {
    this.#raw = raw
    this.#options = options
    this.#expected = options.expected
    onceClosed(raw, () => { this.#onClose() })
    if (options.accepted.eventsFirst) this.#upgrade()
    else if (options.accepted.events) this.#timer = setTimeout(() => { this.#upgrade() }, silenceTimeout)
  }

  get canStream (): boolean { return this.#options.accepted.events }

  send (text: string): void {
    if (!this.canStream || this.#over) return
    this.#upgrade()
    this.#stream?.send(text)
  }

  finish (parts: ReadonlyArray<string | Buffer> | undefined, status = 200): void {
    this.#expected--
    if (parts && this.#stream) this.#stream.send(parts.join(''))
    else if (parts) this.#keep(parts)
    if (this.#expected > 0 || this.#over) return
    this.#over = true
    clearTimeout(this.#timer)
    if (this.#stream) {
      this.#stream.onResume = undefined
      this.#stream.end()
    } else this.#end(status)
  }

  pause (retry: number): void {
    if (!this.canStream || !this.#options.canPoll || this.#over) return
    this.#upgrade()
    this.#stream?.pause(retry)
  }

  /** Holds an answer until its batch is complete. Until then, the answer counts as unread. */
  #keep (parts: ReadonlyArray<string | Buffer>): void {
    this.#answers.push(parts)
    if (this.#expected <= 0) return
    this.#heldSize += parts.reduce((sum, { length }) => sum + length, 0)
    if (this.#heldSize <= maxUncountedReply) return
    this.#unread ??= new UnreadReply(this.#raw, undefined, () => this.#heldSize)
    this.#unread.recordWrite()
  }

  /** Sends the answers as JSON, or an empty response if all requests were cancelled. */
  #end (status: number): void {
    const answers = this.#answers
    // From now on, `writeJson` counts these bytes.
    this.#heldSize = 0
    this.#unread?.updateCount()
    const [first] = answers
    if (!first) {
      if (this.canStream) this.#raw.writeHead(200, { 'content-type': 'text/event-stream' }).end()
      else this.#raw.writeHead(202).end()
    } else if (this.#options.isBatch) {
      writeJson(this.#raw, ['[', ...answers.flatMap((each, at) => at === 0 ? each : [',', ...each]), ']'])
    } else writeJson(this.#raw, first, status)
  }

  #upgrade (): void {
    if (this.#stream || this.#over || this.#raw.destroyed) return
    clearTimeout(this.#timer)
    const stream = this.#options.newStream()
    this.#stream = stream
    stream.attach(new EventStream(this.#raw, {}))
    stream.onResume = (connection) => {
      clearTimeout(this.#timer)
      connection.onClose(() => { this.#onClose() })
    }
    for (const parts of this.#answers.splice(0)) stream.send(parts.join(''))
  }

  #onClose (): void {
    if (this.#over || this.#stream?.isConnected) return
    clearTimeout(this.#timer)
    // Without an event id, the client cannot resume the stream.
    if (this.#stream?.isResumable !== true) { this.#options.onGone(); return }
    // A client polls if the gateway has ended the connection, but may never resume a stream whose connection broke.
    const grace = this.#raw.writableFinished ? downstreamLimits.pollGrace : downstreamLimits.resumeGrace
    this.#timer = setTimeout(() => { this.#options.onGone() }, grace)
    this.#timer.unref()
  }
}

/** The value of `Retry-After` by HTTP status, in seconds (RFC 9110, section 10.2.3). */
const retryAfter: Readonly<Record<number, string>> = { 429: '60', 503: '5' }

/**
 * Sends a JSON response with its total length, without joining its parts. A response with long texts is encoded piece
 * by piece as the client reads it; any other response is written at once. Buffers are not copied.
 */
export function writeJson (
  raw: ServerResponse,
  parts: ReadonlyArray<string | Buffer>,
  status = 200,
  headers: Record<string, string> = {}
): void {
  if (raw.destroyed) return
  let [length, size, characters] = [0, 0, 0]
  for (const part of parts) {
    length += Buffer.byteLength(part)
    size += part.length
    if (typeof part === 'string') characters += part.length
  }
  const retry = status === 200 ? undefined : retryAfter[status]
  if (retry !== undefined) raw.setHeader('retry-after', retry)
  raw.writeHead(status, {
    'content-type': 'application/json', 'content-length': length, 'x-content-type-options': 'nosniff', ...headers
  })
  if (characters > largeTextLength && raw.socket) {
    pacedReply(raw, parts, length).pipe(raw)
    return
  }
  // Only ASCII text has as many bytes as characters; it is encoded faster as Latin-1.
  const encoding = size === length ? 'latin1' : 'utf8'
  const [only] = parts
  if (parts.length === 1) raw.end(only, encoding)
  else {
    raw.cork()
    for (const part of parts) raw.write(part, encoding)
    raw.end()
    raw.uncork()
  }
  if (raw.writableLength > maxUncountedReply) new UnreadReply(raw).recordWrite()
}

/**
 * The event stream of a response to a modern client. It ends with its connection: these clients do not resume streams.
 */
export class ModernReplyStream implements ReplyStream {
  readonly isResumable = false
  onResume: ((connection: EventStream) => void) | undefined
  #connection: EventStream | undefined

  get isConnected (): boolean { return this.#connection?.isOpen === true }

  attach (connection: EventStream): void { this.#connection = connection }

  send (text: string): void { this.#connection?.write(eventText(text)) }

  pause (): void {}

  end (): void { this.#connection?.end() }
}
