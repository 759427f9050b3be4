import { toOneLine } from './json.ts'
import { TextPieces } from './pieces.ts'

/**
 * One server-sent event. `data` is empty for a priming event; `id` and `retry` (in ms) are set only if the sender set
 * them.
 */
export interface ServerSentEvent { event: string, data: string, id?: string, retry?: number }

/** Whether an event contains an MCP message. Some servers send error answers as events of the type `error`. */
export const carriesMessage = ({ event, data }: ServerSentEvent): boolean =>
  data !== '' && (event === 'message' || event === 'error')

/**
 * Parses a `text/event-stream` (WHATWG HTML, "Server-sent events") chunk by chunk.
 * @param onEvent called for each event that has data, an id or a retry time
 * @param limit max characters of an event; if it is exceeded, `push` throws a RangeError
 */
export class EventStreamParser {
  readonly #decoder = new TextDecoder()
  readonly #onEvent: (event: ServerSentEvent) => void
  readonly #limit: number
  readonly #begun = new TextPieces()
  #data: string[] = []
  #dataSize = 0
  #event = ''
  #id: string | undefined
  #retry: number | undefined
  #afterReturn = false
  #messages = 0

  constructor (onEvent: (event: ServerSentEvent) => void, limit: number) {
    this.#onEvent = onEvent
    this.#limit = limit
  }

  /** The number of `message` events with data so far. */
  get messageCount (): number { return this.#messages }

  /** The size of the incomplete event, in characters. */
  get pendingSize (): number { return this.#begun.length + this.#dataSize }

  push (chunk: Uint8Array): void {
    let text = this.#decoder.decode(chunk, { stream: true })
    if (text === '') return
    if (this.#afterReturn && text.startsWith('\n')) text = text.slice(1)
    this.#afterReturn = text.endsWith('\r')
    // A line ends with CRLF, LF or CR.
    if (text.includes('\r')) text = text.replace(/\r\n?/g, '\n')
    let from = 0
    for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', from)) {
      this.#line(this.#begun.take(text.slice(from, at)))
      from = at + 1
    }
    if (from === text.length) return
    this.#begun.push(from === 0 ? text : text.slice(from))
    if (this.pendingSize > this.#limit) throw new RangeError(`an event is longer than ${this.#limit} characters`)
  }

  /**
   * Reads the rest of a stream that has ended.
   * @returns the data of a last event that lacks its final empty line; '' if there is none
   */
  end (): string {
    const line = this.#begun.take('')
    if (line !== '') this.#line(line)
    return this.#data.join('\n')
  }

  #line (line: string): void {
    if (line === '') { this.#dispatch(); return }
    const colon = line.indexOf(':')
    if (colon === 0) return
    const field = colon === -1 ? line : line.slice(0, colon)
    let value = colon === -1 ? '' : line.slice(colon + 1)
    if (value.startsWith(' ')) value = value.slice(1)
    if (field === 'data') {
      this.#data.push(value)
      this.#dataSize += value.length + 1
      if (this.#dataSize > this.#limit) throw new RangeError(`an event is longer than ${this.#limit} characters`)
    } else if (field === 'event') this.#event = value
    else if (field === 'id' && !value.includes('\0')) this.#id = value
    else if (field === 'retry' && /^\d{1,9}$/.test(value)) this.#retry = Number(value)
  }

  #dispatch (): void {
    if (this.#data.length > 0 || this.#id !== undefined || this.#retry !== undefined) {
      const event = this.#event === '' ? 'message' : this.#event
      if (event === 'message' && this.#dataSize > 1) this.#messages++
      this.#onEvent({ event, data: this.#data.join('\n'), id: this.#id, retry: this.#retry })
    }
    this.#data = []
    this.#dataSize = 0
    this.#event = ''
    this.#id = this.#retry = undefined
  }
}

/** Serializes an event with a JSON text as its data. */
export const eventText = (data: string, id?: string): string =>
  `${id === undefined ? '' : `id: ${id}\n`}event: message\ndata: ${toOneLine(data)}\n\n`

/**
 * Serializes a priming event (SEP-1699): an id to resume from, the wait before reconnecting (`retry`, in ms), and no
 * data.
 */
export const primingEventText = (id: string, retry: number): string => `id: ${id}\nretry: ${retry}\ndata: \n\n`
