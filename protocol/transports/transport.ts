import type { UpstreamError } from '../errors.ts'
import type { Message } from '../message.ts'
import { parseMessage } from '../parse-message.ts'

/**
 * Receives the messages and events of a transport. `origin`: the upstream id of the request on whose stream a message
 * came.
 */
export interface Receiver {
  /** @returns whether it is an answer that somebody waits for */
  message: (message: Message, origin: number | undefined) => boolean
  /** The request will get no answer. */
  failed: (id: number, error: UpstreamError) => void
  /** The upstream closed this request's stream, to be polled. @param retry time until then, in ms */
  paused: (id: number, retry: number) => void
  /** The upstream no longer offers its stream of messages: it may have restarted, and not know the connection. */
  doubted?: () => void
  /** The connection is gone, with every request on it. Called once. */
  closed: (error: UpstreamError) => void
}

/** Options of one message. */
export interface SendOptions {
  /** The upstream id, when the message is a request. */
  id?: number
  /** Aborts the sending and the answer's stream. */
  signal?: AbortSignal
  /** The owner in whose share the answer counts. */
  owner?: string
  /** Headers of the client that sends the message, for transports that have headers with each message; lower case. */
  headers?: Readonly<Record<string, string>>
  /**
   * Headers that MCP itself prescribes for the message, in lower case (since 2026-07-28). A message with them belongs
   * to no session: it names none, its answer begins none, and its stream is not resumed. Transports without headers
   * ignore them.
   */
  protocol?: Readonly<Record<string, string>>
}

/** One connection to an upstream: sends and receives message texts, and does not interpret them. */
export interface Transport {
  /**
   * True: each request has a stream of its own, whose end cancels the request where MCP has no sessions; and messages
   * have headers.
   */
  readonly hasStreams?: boolean
  /**
   * For transports that start a process: its last lines of stderr and invalid stdout, as text for
   * `UpstreamError.detail`.
   */
  readonly lastWords?: string
  /**
   * Opens the connection.
   * @param dialled called once a socket or process is open; a transport that connects with its first request calls it
   * then
   * @throws UpstreamError with a message that says what to do
   */
  start: (receiver: Receiver, dialled?: () => void) => Promise<void>
  /** Sends one message. Failures of a request go to `receiver.failed`, never to the caller. */
  send: (text: string, options?: SendOptions) => void
  /** Forgets a request whose answer is no longer wanted. */
  drop: (id: number) => void
  /**
   * Called with the negotiated revision: some transports must name it from now on, and open a stream for messages that
   * belong to no request. Resolves when that stream is open or its timeout has passed: messages that a server sends
   * before it is open would be lost.
   */
  agreed: (version: string) => Promise<void>
  /** Ends the connection; resolves when nothing of it is left. */
  close: () => Promise<void>
}

/** Counts the memory of texts that transports read. The gateway bounds the sum of all. */
export interface MemoryMeter {
  /** Opens an account for one text. @param owner who causes it */
  open: (owner: string) => {
    /** Sets the size of what is read so far, in bytes. @returns false when there is no memory left for it */
    resize: (size: number) => boolean
    /** Whether `resize` returned false because the owner has used up its share. */
    readonly isOwners?: boolean
    close: () => void
  }
}

/** A meter without bounds. */
export const noMeter: MemoryMeter = { open: () => ({ resize: () => true, close: () => {} }) }

/** Bounds of all transports. */
export const transportLimits = {
  /** Max size of a message of an upstream, in bytes. */
  message: 16 * 1024 * 1024,
  /** Messages up to this size, in bytes, are not counted by the meter. */
  small: 64 * 1024,
  /** Max nesting depth of a message of an upstream. */
  depth: 1_000,
  /** Max messages of a batch. */
  batch: 10_000
} as const

/** The messages in a text, which is one message or a batch. @throws RpcError when it is neither */
export function messagesIn (text: string): Message[] {
  const message = parseMessage(text, transportLimits.depth, transportLimits.batch, 'server')
  return Array.isArray(message)
    ? message.flatMap((each) => each.kind === 'malformed' ? [] : [numbered(each)])
    : [numbered(message)]
}

/** Restores the id of an answer as a number: some servers send it back as a string. */
const numbered = (message: Message): Message =>
  message.kind === 'response' && typeof message.id === 'string' && /^\d{1,15}$/.test(message.id)
    ? { ...message, id: Number(message.id) }
    : message

/** The id that an invalid message seems to answer, so that its call need not wait for the deadline. */
export function answeredId (text: string): number | undefined {
  const match =
    /^\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d{1,15})\s*,\s*"(?:result|error)"/.exec(text.slice(0, 200)) ??
    /"id"\s*:\s*(\d{1,15})\s*\}?\s*$/.exec(text.slice(-100))
  return match ? Number(match[1]) : undefined
}
