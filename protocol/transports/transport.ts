import type { UpstreamError } from '../errors.ts'
import type { Message } from '../message.ts'
import { parseMessage } from '../parse-message.ts'

/** Receives a transport's messages and events. `origin`: the upstream id of the request on whose stream one came. */
export interface Receiver {
  /** @returns whether it is an answer that is awaited */
  message: (message: Message, origin: number | undefined) => boolean
  /** The request will get no answer. */
  failed: (id: number, error: UpstreamError) => void
  /** The upstream closed this request's stream, to be polled. @param retry time until then, in ms */
  paused: (id: number, retry: number) => void
  /** The upstream no longer offers its standalone stream: it may have restarted, and not know the connection. */
  restartSuspected?: () => void
  /** The connection is gone, with all its requests. Called once. */
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
  /** Headers of the client that sends the message, in lower case, for transports with headers per message. */
  headers?: Readonly<Record<string, string>>
  /**
   * Headers that MCP prescribes for the message, in lower case (since 2026-07-28). Such a message belongs to no
   * session: it names none, its answer starts none, and its stream is not resumed. Transports without headers ignore
   * them.
   */
  protocol?: Readonly<Record<string, string>>
}

/** One connection to an upstream: sends and receives message texts without interpreting them. */
export interface Transport {
  /** Whether messages have headers, and requests their own streams, whose end cancels where there are no sessions. */
  readonly hasStreams?: boolean
  /** Of a process: the last lines of its stderr and invalid stdout, for `UpstreamError.detail`. */
  readonly lastLines?: string
  /**
   * Opens the connection.
   * @param onDialled called once a socket or process is open; a transport that connects with its first request calls it
   * then
   * @throws UpstreamError with a message that says what to do
   */
  start: (receiver: Receiver, dialled?: () => void) => Promise<void>
  /** Sends one message. A failed request is reported to `receiver.failed`, never to the caller. */
  send: (text: string, options?: SendOptions) => void
  /** Forgets a request whose answer is no longer wanted. */
  drop: (id: number) => void
  /**
   * Called with the negotiated revision: some transports must send it from now on, and open a stream for messages that
   * belong to no request. Resolves when that stream is open or its timeout has passed: messages that a server sends
   * before are lost.
   */
  onNegotiated: (version: string) => Promise<void>
  /** Ends the connection; resolves when nothing of it is left. */
  close: () => Promise<void>
}

/** Counts the memory of texts that transports read; the gateway limits the sum. */
export interface MemoryMeter {
  /** Opens an account for one text. @param owner in whose share it counts */
  open: (owner: string) => {
    /** Sets the size read so far, in bytes. @returns false when no memory is left for it */
    resize: (size: number) => boolean
    /** Whether `resize` returned false because the owner has used up its share. */
    readonly isOwnerLimit?: boolean
    close: () => void
  }
}

/** A meter without limits. */
export const noMeter: MemoryMeter = { open: () => ({ resize: () => true, close: () => {} }) }

/** Limits of all transports. */
export const transportLimits = {
  /** Max size of a message of an upstream, in bytes. */
  message: 16 * 1024 * 1024,
  /** Max size of messages that the meter does not count, in bytes. */
  small: 64 * 1024,
  /** Max nesting depth of a message of an upstream. */
  depth: 1_000,
  /** Max messages of a batch. */
  batch: 10_000
} as const

/** Parses a text that is one message or a batch. @throws RpcError when it is neither */
export function parseMessages (text: string): Message[] {
  const message = parseMessage(text, transportLimits.depth, transportLimits.batch, 'server')
  return Array.isArray(message)
    ? message.flatMap((each) => each.kind === 'malformed' ? [] : [withNumericId(each)])
    : [withNumericId(message)]
}

/** Restores the numeric id of an answer: some servers send it back as a string. */
const withNumericId = (message: Message): Message =>
  message.kind === 'response' && typeof message.id === 'string' && /^\d{1,15}$/.test(message.id)
    ? { ...message, id: Number(message.id) }
    : message

/** The id that an invalid message seems to answer, so that its call can fail at once rather than at its deadline. */
export function guessAnsweredId (text: string): number | undefined {
  const match =
    /^\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d{1,15})\s*,\s*"(?:result|error)"/.exec(text.slice(0, 200)) ??
    /"id"\s*:\s*(\d{1,15})\s*\}?\s*$/.exec(text.slice(-100))
  return match ? Number(match[1]) : undefined
}
