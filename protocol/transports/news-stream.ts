import { EventStreamParser, type StreamEvent } from '../event-stream.ts'
import type { Message } from '../message.ts'
import { HttpAnswer } from './http-answer.ts'
import { mayPass, reconnect } from './redirect.ts'
import { messagesIn, transportLimits } from './transport.ts'
import type { ReadingOptions } from './valve.ts'

interface NewsHandlers {
  /** Sends the GET that opens the stream. @param lastEventId the event after which it is to continue */
  request: (answer: HttpAnswer, lastEventId: string | undefined) => void
  message: (message: Message) => void
  /** The upstream has opened such a stream before and refuses it now: the session may be gone. */
  refused: (status: number, text: string) => void
  /** The upstream could not be reached twice in a row. */
  lost: (error: Error) => void
}

/** Max time to wait for the head of the stream, in ms: some servers send it with the first message only. */
const openTimeout = 500
/** A stream that was open longer than this, in ms, does not count as a failure when it ends. */
const steadyAfter = 3_000
/** Failures in a row that still lengthen the pause, while the upstream does open the stream. */
const maxFailures = 5

/**
 * The GET stream of streamable HTTP, for messages that belong to no request: held open for as long as the connection
 * lasts, and opened again when it ends. An upstream without it answers 405, or any other status but 200. Once it has
 * been open, only 404 and 405 count as a refusal for good.
 */
export class NewsStream {
  readonly #handlers: NewsHandlers
  readonly #reading: ReadingOptions
  #answer: HttpAnswer | undefined
  #timer: NodeJS.Timeout | undefined
  #settled: (() => void) | undefined
  #last: string | undefined
  #wait: number = reconnect.delay
  #wasOpen = false
  #closed = false

  constructor (handlers: NewsHandlers, reading: ReadingOptions) {
    this.#handlers = handlers
    this.#reading = reading
  }

  /** Opens the stream. Resolves when it is open or refused, and after `openTimeout` at the latest. */
  async open (): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#settled = resolve
      setTimeout(resolve, openTimeout).unref()
      this.#request(0)
    })
  }

  close (): void {
    this.#closed = true
    this.#settled?.()
    clearTimeout(this.#timer)
    this.#answer?.abort()
  }

  /** @param failures attempts in a row that brought no lasting stream */
  #request (failures: number): void {
    const begun = Date.now()
    let status = 0
    let opened = false
    let hasData = false
    /** A stream that lasted is no failure: proxies end idle ones. */
    const ended = (): void => {
      const isSteady = hasData || Date.now() - begun > steadyAfter
      this.#again(isSteady ? 0 : Math.min(failures + 1, maxFailures))
    }
    const answer = new HttpAnswer({
      onHead: (code, type) => {
        status = code
        this.#settled?.()
        opened = code === 200 && type.startsWith('text/event-stream')
        this.#wasOpen ||= opened
        if (!opened) return this.#wasOpen && code === 400 ? 'collect' : 'discard'
        return new EventStreamParser((event) => {
          hasData ||= event.data !== ''
          this.#take(event)
        }, transportLimits.message)
      },
      onEnd: (text = '') => {
        if (opened) { ended(); return }
        if (this.#wasOpen) this.#handlers.refused(status, text)
        if (!mayPass(status)) {
          if (!this.#wasOpen || status === 404 || status === 405) return
          // The upstream may not know the last event any more.
          this.#last = undefined
        }
        this.#again(failures + 1)
      },
      onError: (error, sent) => {
        this.#settled?.()
        if (opened) ended()
        else if (!sent && failures > 0) this.#handlers.lost(error)
        else this.#again(failures + 1)
      }
    }, this.#reading)
    this.#answer = answer
    this.#handlers.request(answer, this.#last)
  }

  #again (failures: number): void {
    if (this.#closed) return
    this.#timer = setTimeout(() => { this.#request(failures) }, Math.min(this.#wait * 2 ** failures, reconnect.longest))
    this.#timer.unref()
  }

  #take ({ event, data, id, retry }: StreamEvent): void {
    if (id !== undefined) this.#last = id
    if (retry !== undefined) this.#wait = Math.max(retry, reconnect.shortest)
    if (event === 'message' && data !== '') this.#receive(data)
  }

  #receive (data: string): void {
    let messages: Message[]
    try {
      messages = messagesIn(data)
    } catch {
      // An event that cannot be parsed must not end the stream.
      this.#reading.pace?.count('noise', data.length)
      return
    }
    for (const message of messages) this.#handlers.message(message)
  }
}
