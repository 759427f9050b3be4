import type { UpstreamError } from '../errors.ts'
import { parseMessage, type Message } from '../message.ts'

/** What a transport tells its peer. `origin` is the upstream id of the request on whose stream something came, where there is one. */
export interface Receiver {
  message: (message: Message, origin: number | undefined) => void
  /** The answer to this request will not come. */
  failed: (id: number, error: UpstreamError) => void
  /** The upstream closed this request's stream and wants to be polled after so many ms. */
  paused: (id: number, retry: number) => void
  /** The connection is gone, and every request on it. Told once. */
  closed: (error: UpstreamError) => void
}

/** What belongs to one request that is sent. */
export interface SendOptions {
  /** The upstream id, when the message is a request. */
  id?: number
  /** Aborts the sending and the answer's stream. */
  signal?: AbortSignal
  /** Headers of the client that the message is sent for, where the transport has headers with each; lower case. */
  headers?: Readonly<Record<string, string>>
}

/** One connection to an upstream: takes and gives message texts, knows nothing of their meaning. */
export interface Transport {
  /** Opens the connection. @throws UpstreamError in words that tell the operator what to do */
  start: (receiver: Receiver) => Promise<void>
  /** Sends one message. Failures of a request go to `receiver.failed`, never to the caller. */
  send: (text: string, options?: SendOptions) => void
  /** Forgets a request whose answer is no longer wanted. */
  drop: (id: number) => void
  /**
   * The revision that both sides agreed on, once known: some transports must name it from now on, and open a stream of news.
   * Resolves when that stream is open, or is not worth waiting for: what a server asks before would be lost.
   */
  agreed: (version: string) => Promise<void>
  /** Ends the connection; resolves when nothing of it is left. */
  close: () => Promise<void>
}

/** Bounds that every transport keeps. */
export const transportLimits = {
  /** The longest message taken from an upstream, in bytes. */
  message: 16 * 1024 * 1024,
  /** The deepest nesting taken from an upstream. */
  depth: 1_000
} as const

/** The messages of one text: one, or those of a batch. @throws RpcError when it is neither */
export function messagesIn (text: string): Message[] {
  const message = parseMessage(text, transportLimits.depth)
  return Array.isArray(message) ? message.flatMap((each) => each.kind === 'malformed' ? [] : [numbered(each)]) : [numbered(message)]
}

/** Our ids are numbers. Some servers keep them as strings, and write them back so. */
const numbered = (message: Message): Message =>
  message.kind === 'response' && typeof message.id === 'string' && /^\d{1,15}$/.test(message.id)
    ? { ...message, id: Number(message.id) }
    : message

/** The id that a message which cannot be read seems to answer, so that its call need not wait for the deadline. */
export function answeredId (text: string): number | undefined {
  const match = /^\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d{1,15})\s*,\s*"(?:result|error)"/.exec(text.slice(0, 200)) ??
    /"id"\s*:\s*(\d{1,15})\s*\}?\s*$/.exec(text.slice(-100))
  return match ? Number(match[1]) : undefined
}
