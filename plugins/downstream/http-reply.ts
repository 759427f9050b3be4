import type { ServerResponse } from 'node:http'
import type { Accepted } from './accept.ts'
import { EventStream } from './event-stream.ts'
import type { Session } from './legacy/session.ts'
import type { Stream } from './legacy/stream.ts'
import { limits } from '../limits/index.ts'
import { Unread, worthCounting } from '../limits/unread.ts'

/** After so long without an answer a waiting JSON reply becomes a stream: a proxy would cut a silent one. */
const silence = 5_000

/**
 * The HTTP answer to one POST: JSON when all it says is the final answers, an event stream as soon as it says more, or is
 * silent for long. A stream may be left by its client and taken up again.
 */
export class HttpReply {
  readonly #raw: ServerResponse
  readonly #session: Session
  readonly #accepted: Accepted
  readonly #batch: boolean
  /** The client is gone, and will not come back for the answer. */
  readonly #onGone: () => void
  readonly #finals: Array<Array<string | Buffer>> = []
  #expected: number
  #stream: Stream | undefined
  #timer: NodeJS.Timeout | undefined
  #over = false

  constructor (raw: ServerResponse, session: Session, accepted: Accepted, expected: number, batch: boolean, onGone: () => void) {
    this.#raw = raw
    this.#session = session
    this.#accepted = accepted
    this.#expected = expected
    this.#batch = batch
    this.#onGone = onGone
    raw.once('close', () => { this.#left() })
    if (accepted.eventsFirst) this.#upgrade()
    else if (accepted.events) this.#timer = setTimeout(() => { this.#upgrade() }, silence)
  }

  get canStream (): boolean { return this.#accepted.events }

  isOn (stream: Stream): boolean { return this.#stream === stream }

  /** Says something that is not the answer. Lost on a client that takes JSON only. */
  say (text: string): void {
    if (!this.canStream || this.#over) return
    this.#upgrade()
    this.#stream?.send(text)
  }

  /** One of the final answers, as the parts of its text; the last one ends the reply. Nothing: the request was cancelled. */
  final (parts: Array<string | Buffer> | undefined): void {
    this.#expected--
    if (parts && this.#stream) this.#stream.send(parts.join(''))
    else if (parts) this.#finals.push(parts)
    if (this.#expected > 0 || this.#over) return
    this.#over = true
    clearTimeout(this.#timer)
    if (this.#stream) this.#stream.end()
    else if (this.#finals.length > 0) {
      writeJson(
        this.#raw,
        this.#batch ? ['[', ...this.#finals.flatMap((each, at) => (at === 0 ? each : [',', ...each])), ']'] : this.#finals.flat()
      )
    } else this.#raw.writeHead(this.canStream ? 200 : 202, this.canStream ? { 'content-type': 'text/event-stream' } : {}).end()
  }

  /** Closes the connection for the client to poll (SEP-1699). Nothing, for a client that does not know how. */
  pause (retry: number): void {
    if (!this.canStream || !this.#session.polls || this.#over) return
    this.#upgrade()
    this.#stream?.pause(retry)
  }

  /** The client came back for the stream, on another connection. */
  resumed (connection: EventStream): void {
    clearTimeout(this.#timer)
    connection.onClose(() => { this.#left() })
  }

  #upgrade (): void {
    if (this.#stream || this.#over || this.#raw.destroyed) return
    clearTimeout(this.#timer)
    this.#stream = this.#session.newStream()
    this.#stream.attach(new EventStream(this.#raw, {}))
    if (this.#session.polls) this.#stream.prime()
    for (const parts of this.#finals.splice(0)) this.#stream.send(parts.join(''))
  }

  #left (): void {
    if (this.#over || this.#stream?.connected) return
    clearTimeout(this.#timer)
    // Who holds no id of an event has nothing to come back with.
    if (this.#stream?.resumable !== true) { this.#onGone(); return }
    // A connection that we closed ourselves ended well; one that broke may have a client that never comes back.
    this.#timer = setTimeout(() => { this.#onGone() }, this.#raw.writableFinished ? limits.pollGrace : limits.resumeGrace)
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
