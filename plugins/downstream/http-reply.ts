import type { ServerResponse } from 'node:http'
import { limits } from '../limits/index.ts'
import { Unread, worthCounting } from '../limits/unread.ts'
import type { Accepted } from './accept.ts'
import { EventStream } from './event-stream.ts'
import type { ReplyChannel, ReplyStream } from './reply-channel.ts'

/** A JSON reply that has been waiting for this long, in ms, becomes a stream: a proxy would cut a silent one. */
const silenceTimeout = 5_000

export interface HttpReplyOptions {
  accepted: Accepted
  /** How many answers it carries. */
  expected: number
  /** The answers are those of a JSON-RPC batch. */
  batch: boolean
  /** The client knows how to poll a stream that was closed (SEP-1699). */
  polls: boolean
  newStream: () => ReplyStream
  /** Called when the client is gone and will not come back for the answer. */
  onGone: () => void
}

/**
 * The HTTP answer to one POST: JSON when it is nothing but the answers, an event stream as soon as anything else is sent, or after a
 * silence. A client may leave a stream and take it up again.
 */
export class HttpReply implements ReplyChannel {
  readonly #raw: ServerResponse
  readonly #options: HttpReplyOptions
  readonly #answers: Array<ReadonlyArray<string | Buffer>> = []
  #expected: number
  #stream: ReplyStream | undefined
  #timer: NodeJS.Timeout | undefined
  #over = false

  constructor (raw: ServerResponse, options: HttpReplyOptions) {
    this.#raw = raw
    this.#options = options
    this.#expected = options.expected
    raw.once('close', () => { this.#left() })
    if (options.accepted.eventsFirst) this.#upgrade()
    else if (options.accepted.events) this.#timer = setTimeout(() => { this.#upgrade() }, silenceTimeout)
  }

  get canStream (): boolean { return this.#options.accepted.events }

  send (text: string): void {
    if (!this.canStream || this.#over) return
    this.#upgrade()
    this.#stream?.send(text)
  }

  finish (parts: ReadonlyArray<string | Buffer> | undefined): void {
    this.#expected--
    if (parts && this.#stream) this.#stream.send(parts.join(''))
    else if (parts) this.#answers.push(parts)
    if (this.#expected > 0 || this.#over) return
    this.#over = true
    clearTimeout(this.#timer)
    if (this.#stream) {
      this.#stream.onResume = undefined
      this.#stream.end()
    } else this.#end()
  }

  pause (retry: number): void {
    if (!this.canStream || !this.#options.polls || this.#over) return
    this.#upgrade()
    this.#stream?.pause(retry)
  }

  /** Answers without a stream. Where every request was cancelled, there is nothing to say. */
  #end (): void {
    const answers = this.#answers
    if (answers.length === 0) {
      this.#raw.writeHead(this.canStream ? 200 : 202, this.canStream ? { 'content-type': 'text/event-stream' } : {}).end()
    } else if (this.#options.batch) writeJson(this.#raw, ['[', ...answers.flatMap((each, at) => (at === 0 ? each : [',', ...each])), ']'])
    else writeJson(this.#raw, answers.flat())
  }

  #upgrade (): void {
    if (this.#stream || this.#over || this.#raw.destroyed) return
    clearTimeout(this.#timer)
    const stream = this.#options.newStream()
    this.#stream = stream
    stream.attach(new EventStream(this.#raw, {}))
    stream.onResume = (connection) => {
      clearTimeout(this.#timer)
      connection.onClose(() => { this.#left() })
    }
    for (const parts of this.#answers.splice(0)) stream.send(parts.join(''))
  }

  #left (): void {
    if (this.#over || this.#stream?.connected) return
    clearTimeout(this.#timer)
    // A client without an event id has nothing to come back with.
    if (this.#stream?.resumable !== true) { this.#options.onGone(); return }
    // A connection that we closed ourselves ended well; after one that broke, the client may never come back.
    const grace = this.#raw.writableFinished ? limits.pollGrace : limits.resumeGrace
    this.#timer = setTimeout(() => { this.#options.onGone() }, grace)
    this.#timer.unref()
  }
}

/** Writes a JSON answer from parts, with its length, so that nothing is copied to be joined. */
export function writeJson (
  raw: ServerResponse,
  parts: ReadonlyArray<string | Buffer>,
  status = 200,
  headers: Record<string, string> = {}
): void {
  if (raw.destroyed) return
  let length = 0
  for (const part of parts) length += Buffer.byteLength(part)
  raw.writeHead(status, { 'content-type': 'application/json', 'content-length': length, 'x-content-type-options': 'nosniff', ...headers })
  if (parts.length === 1) raw.end(parts[0])
  else if (parts.every((part) => typeof part === 'string')) raw.end(parts.join(''))
  else {
    for (const part of parts) raw.write(part)
    raw.end()
  }
  if (raw.writableLength > worthCounting) new Unread(raw).add()
}
