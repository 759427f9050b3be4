import { EventStreamParser, type StreamEvent } from '../event-stream.ts'
import type { Message } from '../message.ts'
import { Answer } from './http-answer.ts'
import { mayPass, reconnect } from './reconnect.ts'
import { messagesIn, transportLimits } from './transport.ts'

export interface NewsHandlers {
  /** Sends the GET that asks for the stream; for what came after this event, where there was one. */
  ask: (answer: Answer, lastEventId: string | undefined) => void
  message: (message: Message) => void
  /** The upstream had such a stream, and answers with this now: our session may be gone. */
  refused: (status: number, text: string) => void
  /** The upstream cannot be reached, not even a second time. */
  lost: (error: Error) => void
}

/** How long the stream is waited for, in ms: some servers send its head with the first news only. */
const patience = 500
/** A stream that stood so long, in ms, was none that fails. */
const steady = 3_000
/** How many failures in a row make the pause longer, where the upstream does open the stream. */
const mostFailures = 5

/**
 * The GET stream of streamable HTTP, for what belongs to no request: held open for as long as the connection lasts, and asked for
 * again when it ends. An upstream that offers none answers 405, or anything but 200; one that had one is believed only 404 and 405.
 */
export class NewsStream {
  readonly #handlers: NewsHandlers
  #answer: Answer | undefined
  #timer: NodeJS.Timeout | undefined
  #settled: (() => void) | undefined
  #last: string | undefined
  #wait: number = reconnect.delay
  #stood = false
  #closed = false

  constructor (handlers: NewsHandlers) {
    this.#handlers = handlers
  }

  /** Asks for the stream. Resolves when it is open, or not worth waiting for. */
  async open (): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#settled = resolve
      setTimeout(resolve, patience).unref()
      this.#ask(0)
    })
  }

  close (): void {
    this.#closed = true
    this.#settled?.()
    clearTimeout(this.#timer)
    this.#answer?.abort()
  }

  /** @param failures how many attempts in a row have brought no stream that lasted */
  #ask (failures: number): void {
    const begun = Date.now()
    let status = 0
    let opened = false
    let heard = false
    /** A stream that lasted is no failure: something on the way ends the idle ones. */
    const ended = (): void => { this.#again(heard || Date.now() - begun > steady ? 0 : Math.min(failures + 1, mostFailures)) }
    const answer = new Answer({
      onHead: (code, type) => {
        status = code
        this.#settled?.()
        opened = code === 200 && type.startsWith('text/event-stream')
        this.#stood ||= opened
        if (!opened) return this.#stood && code === 400 ? 'collect' : 'discard'
        return new EventStreamParser((event) => {
          heard ||= event.data !== ''
          this.#take(event)
        }, transportLimits.message)
      },
      onEnd: (text = '') => {
        if (opened) { ended(); return }
        if (this.#stood) this.#handlers.refused(status, text)
        if (!mayPass(status)) {
          if (!this.#stood || status === 404 || status === 405) return
          // It may be the event that it does not know any more.
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
    })
    this.#answer = answer
    this.#handlers.ask(answer, this.#last)
  }

  #again (failures: number): void {
    if (this.#closed) return
    this.#timer = setTimeout(() => { this.#ask(failures) }, Math.min(this.#wait * 2 ** failures, reconnect.longest))
    this.#timer.unref()
  }

  #take ({ event, data, id, retry }: StreamEvent): void {
    if (id !== undefined) this.#last = id
    if (retry !== undefined) this.#wait = Math.max(retry, reconnect.shortest)
    if (event !== 'message' || data === '') return
    let messages: Message[] = []
    // One that cannot be read is no reason to lose the others.
    try { messages = messagesIn(data) } catch {}
    for (const message of messages) this.#handlers.message(message)
  }
}
