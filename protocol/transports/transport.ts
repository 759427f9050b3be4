import type { UpstreamError } from '../errors.ts'
import type { Message } from '../message.ts'
import { parseMessage } from '../parse-message.ts'

/**
 * Receives a transport's messages and events. `origin`: the id of the request on whose stream a message arrived;
 * undefined if there is no such request, or if it is unknown.
 */
export interface Receiver {
  /** Called with each message. @returns whether it is an answer to a pending request */
  message: (message: Message, origin: number | undefined) => boolean
  /** Called when a request has failed: it gets no answer. */
  failed: (id: number, error: UpstreamError) => void
  /**
   * Called when the upstream has closed the request's stream in order to be polled.
   * @param retry the time to wait before polling, in ms
   */
  paused: (id: number, retry: number) => void
  /**
   * Called when the upstream may have restarted: it no longer offers its standalone stream, or an error could mean that
   * the session is unknown. Resolves once a request has shown whether it still knows the session.
   */
  restartSuspected?: () => Promise<void>
  /** Called when the connection has ended; no pending request gets an answer after that. */
  closed: (error: UpstreamError) => void
}

export interface SendOptions {
  /** The id of the request, as sent to the upstream; undefined for other messages. */
  id?: number
  /** The owner whose memory share the answer counts against. */
  owner?: string
  /** Headers of the client that sends the message, in lower case, for transports that have headers per message. */
  headers?: Readonly<Record<string, string>>
  /**
   * Headers that MCP prescribes for the message, in lower case (since 2026-07-28). A message with such headers belongs
   * to no session: it has no session id, its answer starts none, and its stream is not resumed. Transports without HTTP
   * ignore them.
   */
  protocol?: Readonly<Record<string, string>>
}

/** One connection to an upstream: sends message texts, and passes parsed messages to a receiver. */
export interface Transport {
  /**
   * Whether messages have headers, and each request has a stream of its own. Outside a session, closing that stream
   * cancels the request.
   */
  readonly hasStreams?: boolean
  /** For a process: the last lines of stderr and invalid lines of stdout, for `UpstreamError.detail`. */
  readonly lastLines?: string
  /**
   * Opens the connection.
   * @param dialled called when a process or socket is open; some transports open the socket only at the first `send`
   * @throws UpstreamError with a message that says what to do
   */
  start: (receiver: Receiver, dialled?: () => void) => Promise<void>
  /** Sends one message. A failure is reported to `receiver.failed`, never thrown. */
  send: (text: string, options?: SendOptions) => void
  /** Discards a request whose answer is no longer wanted. */
  drop: (id: number) => void
  /**
   * Called with the negotiated revision, after `notifications/initialized` was sent. Some transports must state
   * the revision from now on, and open a stream for messages that belong to no request. Resolves when the notification
   * was accepted and that stream is open, or timeouts have passed; messages that the server sends earlier are lost.
   */
  onNegotiated: (version: string) => Promise<void>
  /** Closes the connection; resolves when all its resources are released. */
  close: () => Promise<void>
}

/** Counts the memory of texts that transports read. The gateway limits the total. */
export interface MemoryMeter {
  /** Opens an account for one text. @param owner the owner whose share of memory the text counts against */
  openAccount: (owner: string) => {
    /** Sets the size read so far, in bytes. @returns false if there is not enough memory */
    resize: (size: number) => boolean
    /** Whether `resize` returned false because the owner has used up its share. */
    readonly isOwnerLimit?: boolean
    close: () => void
  }
}

export const noMeter: MemoryMeter = { openAccount: () => ({ resize: () => true, close: () => {} }) }

export const transportLimits = {
  /** Max size of a message from an upstream, in bytes. */
  message: 16 * 1024 * 1024,
  /** Max size of messages that the meter does not count, in bytes. */
  small: 64 * 1024,
  /** Max nesting depth of a message from an upstream. */
  depth: 1_000,
  /** Max messages in a batch. */
  batch: 10_000
} as const

/** Max wait until a server has accepted `notifications/initialized`, which requests must not overtake, in ms. */
export const initializedNotificationTimeout = 2_000

/** Parses a message or a batch, of which invalid elements are dropped. @throws RpcError if the text is neither */
export function parseMessages (text: string): Message[] {
  const message = parseMessage(text, transportLimits.depth, transportLimits.batch, 'server')
  return Array.isArray(message)
    ? message.flatMap((each) => each.kind === 'malformed' ? [] : [withNumericId(each)])
    : [withNumericId(message)]
}

/** Restores the numeric id of an answer, which some servers return as a string. */
const withNumericId = (message: Message): Message =>
  message.kind === 'response' && typeof message.id === 'string' && /^\d{1,15}$/.test(message.id)
    ? { ...message, id: Number(message.id) }
    : message

/** Guesses the id of the request that an invalid message answers, so that the request fails at once. */
export function guessAnsweredId (text: string): number | undefined {
  const match =
    /^\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d{1,15})\s*,\s*"(?:result|error)"/.exec(text.slice(0, 200)) ??
    /"id"\s*:\s*(\d{1,15})\s*\}?\s*$/.exec(text.slice(-100))
  return match ? Number(match[1]) : undefined
}
