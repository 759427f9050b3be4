import type { Question } from '../../protocol/exchange.ts'
import type { Response } from '../../protocol/message.ts'
import type { EventStream } from './event-stream.ts'

/** The channel for the answer to one request, or to all requests of a batch. */
export interface ReplyChannel {
  /** Whether messages other than the answer can be sent. */
  readonly canStream: boolean
  /** Sends a notification or a question that belongs to the request; dropped if `canStream` is false. */
  send: (text: string) => void
  /**
   * Sends the answer, as the parts of its text; undefined if the request was cancelled and has none.
   * @param status the HTTP status, if the head has not been sent yet
   */
  finish: (parts: ReadonlyArray<string | Buffer> | undefined, status?: number) => void
  /** Closes the connection so that the client polls, if it supports that (SEP-1699). @param retry in ms */
  pause: (retry: number) => void
}

/** An event stream for a reply, or for messages without a request. A legacy stream may outlive its connection. */
export interface ReplyStream {
  readonly isConnected: boolean
  /** Whether the client has an event id to resume from. */
  readonly isResumable: boolean
  /** Called with each connection that resumes the stream while it carries a reply. */
  onResume: ((connection: EventStream) => void) | undefined
  /** Continues on a connection, which replaces the former one. */
  attach: (connection: EventStream) => void
  send: (text: string) => void
  /** Closes the connection so that the client polls. @param retry in ms */
  pause: (retry: number) => void
  end: () => void
}

/**
 * Sends a client a question, and resolves to its response.
 * @param send sends a message on the question's stream
 * @throws RpcError if the client has disconnected
 */
export type AskClient = (send: (text: string) => void, question: Question) => Promise<Response>
