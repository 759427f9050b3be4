import { carriesMessage, EventStreamParser, type StreamEvent } from '../event-stream.ts'
import type { Message } from '../message.ts'
import { HttpAnswer } from './http-answer.ts'
import { isTransientStatus, reconnectDelays } from './reconnect.ts'
import { parseMessages, transportLimits } from './transport.ts'
import type { ReadingOptions } from './valve.ts'

interface StandaloneStreamHandlers {
  /** Sends the GET that opens the stream. @param lastEventId the event after which to continue */
  request: (answer: HttpAnswer, lastEventId: string | undefined) => void
  message: (message: Message) => void
  /** Called if the upstream refuses a stream that it opened before: the session may have ended. */
  refused: (status: number, text: string) => void
  /** Called when the upstream was unreachable twice in a row. */
  lost: (error: Error) => void
}

/** Max wait for the response head of the stream, in ms: some servers send it only with the first message. */
const openTimeout = 500
/** A stream that was open for longer than this, in ms, does not count as failed when it ends. */
const steadyAfter = 3_000
/** Max consecutive failures that lengthen the pause before a stream that did open is reopened. */
const maxFailures = 5

/**
 * The standalone GET stream of streamable HTTP, for messages that belong to no request. It stays open as long as the
 * connection, and is reopened when it ends. An upstream without such a stream answers 405, or any status but 200; after
 * the stream has been open once, only 404 and 405 are final.
 */
export class StandaloneStream {
  readonly #handlers: StandaloneStreamHandlers
  readonly #reading: ReadingOptions
  #answer: HttpAnswer | undefined
  #timer: NodeJS.Timeout | undefined
  #settled: (() => void) | undefined
  #last: string | undefined
  #wait: number = reconnectDelays.delay
  #wasOpen = false
  #isOpen = false
  #closed = false

  constructor (handlers: StandaloneStreamHandlers, reading: ReadingOptions) {
    this.#handlers = handlers
    this.#reading = reading
  }

  get isOpen (): boolean { return this.#isOpen }

  /** Opens the stream. Resolves when it is open or refused, at the latest after `openTimeout`. */
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

  /** @param failures consecutive attempts that opened no lasting stream */
  #request (failures: number): void {
    const begun = Date.now()
    let status = 0
    let opened = false
    let hasData = false
    /** A stream that lasted does not count as a failure: proxies close idle ones. */
    const ended = (): void => {
      this.#isOpen = false
      const isSteady = hasData || Date.now() - begun > steadyAfter
      this.#again(isSteady ? 0 : Math.min(failures + 1, maxFailures))
    }
    const answer = new HttpAnswer({
      onHead: (code, type) => {
        status = code
        this.#settled?.()
        opened = code === 200 && type.startsWith('text/event-stream')
        this.#wasOpen ||= opened
        this.#isOpen = opened
        if (!opened) return this.#wasOpen && code >= 400 ? 'collect' : 'discard'
        return new EventStreamParser((event) => {
          hasData ||= event.data !== ''
          this.#take(event)
        }, transportLimits.message)
      },
      onEnd: (text = '') => {
        if (opened) { ended(); return }
        if (this.#wasOpen) this.#handlers.refused(status, text)
        if (!isTransientStatus(status)) {
          if (!this.#wasOpen || status === 404 || status === 405) return
          // The upstream may no longer know the last event.
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
    const delay = Math.min(this.#wait * 2 ** failures, reconnectDelays.longest)
    this.#timer = setTimeout(() => { this.#request(failures) }, delay)
    this.#timer.unref()
  }

  #take (event: StreamEvent): void {
    const { data, id, retry } = event
    if (id !== undefined) this.#last = id
    if (retry !== undefined) this.#wait = Math.max(retry, reconnectDelays.shortest)
    if (carriesMessage(event)) this.#receive(data)
  }

  #receive (data: string): void {
    let messages: Message[]
    try {
      messages = parseMessages(data)
    } catch {
      // An event that cannot be parsed must not end the stream.
      this.#reading.pace?.count('noise', data.length)
      return
    }
    for (const message of messages) this.#handlers.message(message)
  }
}
