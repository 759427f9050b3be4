import type { Question } from '../../protocol/exchange.ts'
import type { Response } from '../../protocol/message.ts'
import type { EventStream } from './event-stream.ts'

/** The way back for one request, or for all requests of a batch. */
export interface ReplyChannel {
  /** Whether anything but the answer can be sent. */
  readonly canStream: boolean
  /** Sends a notification or a question that belongs to the request. Lost where `canStream` is false. */
  send: (text: string) => void
  /** Sends the answer, as the parts of its text. Undefined: the request was cancelled, and there is none. */
  finish: (parts: ReadonlyArray<string | Buffer> | undefined) => void
  /** Closes the connection for the client to poll, where the client knows how (SEP-1699). @param retry in ms */
  pause: (retry: number) => void
}

/** An event stream that carries a reply, or what belongs to no request. Where its era resumes streams, it may outlive its connection. */
export interface ReplyStream {
  readonly connected: boolean
  /** True when its client has been given an event id to resume it from. */
  readonly resumable: boolean
  /** Called with each new connection that resumes it, while a reply is carried on it. */
  onResume: ((connection: EventStream) => void) | undefined
  attach: (connection: EventStream) => void
  send: (text: string) => void
  pause: (retry: number) => void
  end: () => void
}

/**
 * Puts questions to a client.
 * @param send puts a message on the stream that the question belongs to
 * @throws RpcError when the client went away
 */
export type Ask = (send: (text: string) => void, question: Question) => Promise<Response>
