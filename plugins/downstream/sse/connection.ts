import { eventText } from '../../../protocol/event-stream.ts'
import type { View } from '../../settings/index.ts'
import type { EventStream } from '../event-stream.ts'
import type { NewsChannel, Session } from '../legacy/session.ts'
import type { ReplyChannel } from '../reply-channel.ts'

/** One client of the SSE transport: its stream, on which it gets all messages, and the session that it begins by `initialize`. */
export class SseConnection implements NewsChannel {
  readonly id: string
  readonly view: View
  readonly #stream: EventStream
  session: Session | undefined
  /** True while its `initialize` is handled. */
  initializing = false
  /** Answers that are still to be sent. */
  #pending = 0
  #ending = false

  /** @param id what the client sends as `sessionId`; never a credential */
  constructor (id: string, view: View, stream: EventStream) {
    this.id = id
    this.view = view
    this.#stream = stream
  }

  get connected (): boolean { return this.#stream.open }
  get stream (): EventStream { return this.#stream }

  /** Sends the address to which the client posts its messages, as the first event. */
  sendEndpoint (url: string): void { this.#stream.write(`event: endpoint\ndata: ${url}\n\n`) }

  send (text: string): void { this.#stream.write(eventText(text)) }

  /** Ends the stream, once the answers that are still to be sent are sent. */
  end (): void {
    this.#ending = true
    if (this.#pending === 0) this.#stream.end()
  }

  /** The channel for the answers to one POST: always the stream. */
  openReply (answers: number): ReplyChannel {
    this.#pending += answers
    return {
      canStream: true,
      send: (text) => { this.send(text) },
      finish: (parts) => {
        if (parts) this.send(parts.join(''))
        this.#pending--
        if (this.#ending) this.end()
      },
      pause: () => {}
    }
  }
}
