import type { ServerResponse } from 'node:http'
import { limits } from '../limits/index.ts'
import { Unread } from '../limits/unread.ts'

const heartbeat = 15_000
const streams = new Set<EventStream>()
let timer: NodeJS.Timeout | undefined

/** One open `text/event-stream` answer: bounded towards a slow reader, kept alive by comments. */
export class EventStream {
  readonly #raw: ServerResponse
  readonly #unread: Unread
  /** Since when more is left unread than may be. */
  #behind: number | undefined

  /** Sends the head, and a comment at once: without a first byte the head would wait. */
  constructor (raw: ServerResponse, headers: Record<string, string>) {
    this.#raw = raw
    raw.writeHead(200, { ...headers, 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' })
    raw.write(': ok\n\n')
    this.#unread = new Unread(raw)
    streams.add(this)
    raw.once('close', () => { streams.delete(this); if (streams.size === 0) { clearInterval(timer); timer = undefined } })
    // One timer for all: an idle stream costs a socket, not a timer.
    timer ??= setInterval(() => { for (const stream of streams) stream.write(': keep-alive\n\n') }, heartbeat).unref()
  }

  get open (): boolean { return !this.#raw.writableEnded && !this.#raw.destroyed }

  write (text: string): void {
    if (!this.open) return
    // A burst is no sign of a slow reader; what it left of earlier ones is.
    const unread = this.#unread.count()
    if (unread <= limits.streamBacklog) this.#behind = undefined
    else if (unread > 4 * limits.streamBacklog || Date.now() - (this.#behind ??= Date.now()) > limits.streamBacklogTime) {
      this.#unread.drop()
      return
    }
    this.#raw.write(text)
    this.#unread.add()
  }

  end (): void {
    if (this.open) this.#raw.end()
  }

  onClose (listener: () => void): void {
    this.#raw.once('close', listener)
  }
}
