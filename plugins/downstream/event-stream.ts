import type { ServerResponse } from 'node:http'
import { limits } from '../limits/index.ts'

const heartbeat = 15_000
const streams = new Set<EventStream>()
let timer: NodeJS.Timeout | undefined

/** One open `text/event-stream` answer: bounded towards a slow reader, kept alive by comments. */
export class EventStream {
  readonly #raw: ServerResponse

  /** Sends the head, and a comment at once: without a first byte the head would wait. */
  constructor (raw: ServerResponse, headers: Record<string, string>) {
    this.#raw = raw
    raw.writeHead(200, { ...headers, 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' })
    raw.write(': ok\n\n')
    streams.add(this)
    raw.once('close', () => { streams.delete(this); if (streams.size === 0) { clearInterval(timer); timer = undefined } })
    // One timer for all: an idle stream costs a socket, not a timer.
    timer ??= setInterval(() => { for (const stream of streams) stream.write(': keep-alive\n\n') }, heartbeat).unref()
  }

  get open (): boolean { return !this.#raw.writableEnded && !this.#raw.destroyed }

  write (text: string): void {
    if (!this.open) return
    // What the reader left of what came before counts; one large message alone is no sign of a slow reader.
    if (this.#raw.writableLength > limits.streamBacklog) this.#raw.destroy()
    else this.#raw.write(text)
  }

  end (): void {
    if (this.open) this.#raw.end()
  }

  onClose (listener: () => void): void {
    this.#raw.once('close', listener)
  }
}
