import type { ServerResponse } from 'node:http'
import { memoryOf } from '../../protocol/text.ts'
import { onceClosed, UnreadReply } from '../base/limits/index.ts'
import { downstreamLimits } from './limits.ts'

/** Interval of the comments that keep streams alive, in ms. */
const heartbeatInterval = 15_000
const openStreams = new Set<EventStream>()
let heartbeatTimer: NodeJS.Timeout | undefined

/** An open `text/event-stream` response. Comments keep it alive. It is closed if its client reads too slowly. */
export class EventStream {
  readonly #raw: ServerResponse
  readonly #unread: UnreadReply
  readonly #closeListeners: Array<() => void> = []
  /** The time since which more than `downstreamLimits.streamBacklog` bytes have been unread, in ms since 1970. */
  #backlogSince: number | undefined

  /** Sends the head and a first comment, since Node sends the head only with the first byte of the body. */
  constructor (raw: ServerResponse, headers: Record<string, string>) {
    this.#raw = raw
    raw.writeHead(
      200, { ...headers, 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' }
    )
    // Written on its own, the head becomes one flat string; otherwise Node keeps about 40 pieces of it in memory.
    raw.cork()
    raw.flushHeaders()
    raw.write(': ok\n\n')
    raw.uncork()
    this.#unread = new UnreadReply(raw, (listener) => { this.onClose(listener) })
    openStreams.add(this)
    onceClosed(raw, () => { this.#onClosed() })
    // All streams share one timer.
    heartbeatTimer ??= setInterval(() => {
      for (const stream of openStreams) stream.write(': keep-alive\n\n')
    }, heartbeatInterval).unref()
  }

  get isOpen (): boolean { return !this.#raw.writableEnded && !this.#raw.destroyed }

  write (text: string): void {
    if (!this.isOpen) return
    // Unread bytes of earlier writes indicate a slow reader; one large write does not.
    const unread = this.#unread.updateCount()
    if (unread <= downstreamLimits.streamBacklog) this.#backlogSince = undefined
    else if (unread > 4 * downstreamLimits.streamBacklog ||
      Date.now() - (this.#backlogSince ??= Date.now()) > downstreamLimits.streamBacklogTime) {
      this.#unread.close()
      return
    }
    // Until Node encodes a string, it counts characters as bytes, so strings of two-byte characters are encoded here.
    this.#raw.write(memoryOf(text) > text.length ? Buffer.from(text) : text)
    this.#unread.recordWrite()
  }

  end (): void {
    if (this.isOpen) this.#raw.end()
  }

  /** Adds a listener for the end of the connection. All listeners share one on the socket, to save memory. */
  onClose (listener: () => void): void {
    this.#closeListeners.push(listener)
  }

  #onClosed (): void {
    openStreams.delete(this)
    if (openStreams.size === 0) {
      clearInterval(heartbeatTimer)
      heartbeatTimer = undefined
    }
    for (const listener of this.#closeListeners) listener()
  }
}
