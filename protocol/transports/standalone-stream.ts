import { carriesMessage, EventStreamParser, type ServerSentEvent } from '../event-stream.ts'
import type { Message } from '../message.ts'
import { HttpAnswerReader } from './http-answer.ts'
import { isTransientStatus, reconnectDelays } from './reconnect.ts'
import { parseMessages, transportLimits } from './transport.ts'
import type { ReadingOptions } from './valve.ts'

interface StandaloneStreamHandlers {
  /** Sends the GET that opens the stream. @param lastEventId the event after which the stream continues */
  request: (answer: HttpAnswerReader, lastEventId: string | undefined) => void
  message: (message: Message) => void
  /** Called if the upstream refuses to reopen a stream that was open: the session may have ended. */
  refused: (status: number, text: string) => void
  /** Called when the upstream is unreachable and the attempt before has failed, too. */
  lost: (error: Error) => void
}

/** Max wait until the stream is open, in ms: some servers send the head of the answer only with the first message. */
const openTimeout = 500
/** A stream that was open for longer than this, in ms, does not count as failed when it ends. */
const steadyAfter = 3_000
/** The pause before a stream that was open is reopened grows with consecutive failures, up to this number. */
const maxFailures = 5

/**
 * The standalone GET stream of streamable HTTP, for messages that belong to no request. It is reopened when it ends,
 * and after temporary errors. Until it has been open, any other answer (usually 405) means that the upstream has no
 * such stream; afterwards, only 404 and 405 are final.
 */
export class StandaloneStream {
  readonly #handlers: StandaloneStreamHandlers
  readonly #reading: ReadingOptions
  #answer: HttpAnswerReader | undefined
  #timer: NodeJS.Timeout | undefined
  #onSettled: (() => void) | undefined
  #lastEventId: string | undefined
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
      this.#onSettled = resolve
      setTimeout(resolve, openTimeout).unref()
      this.#request(0)
    })
  }

  close (): void {
    this.#closed = true
    this.#onSettled?.()
    clearTimeout(this.#timer)
    this.#answer?.abort()
  }

  /** Opens the stream. @param failures the number of consecutive failures so far */
  #request (failures: number): void {
    const begun = Date.now()
    let status = 0
    let opened = false
    let hasData = false
    /** Handles the stream's end. After data or `steadyAfter`, it is not a failure, since proxies close idle streams. */
    const ended = (): void => {
      this.#isOpen = false
      const isSteady = hasData || Date.now() - begun > steadyAfter
      this.#reopen(isSteady ? 0 : Math.min(failures + 1, maxFailures))
    }
    const answer = new HttpAnswerReader({
      onHead: (code, type) => {
        status = code
        this.#onSettled?.()
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
          this.#lastEventId = undefined
        }
        this.#reopen(failures + 1)
      },
      onError: (error, sent) => {
        this.#onSettled?.()
        if (opened) ended()
        else if (!sent && failures > 0) this.#handlers.lost(error)
        else this.#reopen(failures + 1)
      }
    }, this.#reading)
    this.#answer = answer
    this.#handlers.request(answer, this.#lastEventId)
  }

  #reopen (failures: number): void {
    if (this.#closed) return
    const delay = Math.min(this.#wait * 2 ** failures, reconnectDelays.longest)
    this.#timer = setTimeout(() => { this.#request(failures) }, delay)
    this.#timer.unref()
  }

  #take (event: ServerSentEvent): void {
    const { data, id, retry } = event
    if (id !== undefined) this.#lastEventId = id
    if (retry !== undefined) this.#wait = Math.max(retry, reconnectDelays.shortest)
    if (carriesMessage(event)) this.#receive(data)
  }

  #receive (data: string): void {
    let messages: Message[]
    try {
      messages = parseMessages(data)
    } catch {
      // An event that cannot be parsed does not end the stream.
      this.#reading.pace?.count('noise', data.length)
      return
    }
    for (const message of messages) this.#handlers.message(message)
  }
}
