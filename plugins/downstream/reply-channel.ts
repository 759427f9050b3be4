import type { Question } from '../../protocol/exchange.ts'
import type { Response } from '../../protocol/message.ts'
import type { EventStream } from './event-stream.ts'

/** The channel for the answer to one request, or to all requests of a batch. */
export interface ReplyChannel {
  /** Whether messages other than the answer can be sent. */
  readonly canStream: boolean
  /** Sends a notification or a question that belongs to the request. Does nothing if `canStream` is false. */
  send: (text: string) => void
  /**
   * Sends an answer.
   * @param parts the parts of the text of the answer; undefined if the request was cancelled and has no answer
   * @param status the HTTP status, if the head has not been sent yet
   */
  finish: (parts: ReadonlyArray<string | Buffer> | undefined, status?: number) => void
  /** Ends the connection so that the client polls after `retry` ms, if the client supports that (SEP-1699). */
  pause: (retry: number) => void
}

/** An event stream that carries a reply, or messages that belong to no request. It may outlive its connection. */
export interface ReplyStream {
  readonly isConnected: boolean
  /** Whether the client has received an event id, with which it can resume the stream. */
  readonly isResumable: boolean
  /** Called with each connection that resumes the stream while it carries a reply. */
  onResume: ((connection: EventStream) => void) | undefined
  /** Continues the stream on a connection, which replaces the former connection. */
  attach: (connection: EventStream) => void
  send: (text: string) => void
  /** Ends the connection so that the client polls after `retry` ms. */
  pause: (retry: number) => void
  end: () => void
}

/**
 * Sends a question to a client, and returns the client's response.
 * @param send sends a message on the stream of the question
 * @throws RpcError if there is no response, for example since the client has disconnected
 */
export type AskClient = (send: (text: string) => void, question: Question) => Promise<Response>
