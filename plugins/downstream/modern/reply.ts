import { eventText } from '../../../protocol/event-stream.ts'
import type { EventStream } from '../event-stream.ts'
import type { ReplyStream } from '../reply-channel.ts'

/** The event stream of one answer. It ends with its connection: streams of this era are not resumed. */
export class AnswerStream implements ReplyStream {
  readonly resumable = false
  onResume: ((connection: EventStream) => void) | undefined
  #connection: EventStream | undefined

  get connected (): boolean { return this.#connection?.open === true }

  attach (connection: EventStream): void { this.#connection = connection }

  send (text: string): void { this.#connection?.write(eventText(text)) }

  pause (): void {}

  end (): void { this.#connection?.end() }
}
