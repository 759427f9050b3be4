import type { Call, CallOptions } from './call.ts'
import type { ClientCapabilities, ServerCapabilities } from './capabilities.ts'
import type { UpstreamError } from './errors.ts'
import type { Exchange, Question } from './exchange.ts'
import type { Level } from './listener.ts'
import type { Notification, Response } from './message.ts'

/** The identity of a server, from the beginning of a connection. */
export interface ServerIdentity {
  /** The MCP revision of the connection. */
  readonly version: string
  readonly capabilities: ServerCapabilities
  /** As JSON text; `{}`: the server says none, which the modern era lets it. */
  readonly serverInfo: string
  readonly instructions: string | undefined
}

/** The identity of the gateway on one connection. */
export interface ClientIdentity {
  readonly clientInfo: { readonly name: string, readonly version: string }
  /** The capabilities of the clients that the connection serves. */
  readonly capabilities: ClientCapabilities
  /** Timeout of the handshake and of requests of the gateway's own, in ms. */
  readonly initTimeout: number
  /** True when the connection serves a single client: all that the upstream sends is then for that client. */
  readonly exclusive: boolean
}

/**
 * The call on whose stream a message came; `over`: that call is already answered; undefined: it came on no call's
 * stream.
 */
export type Origin = Call | 'over' | undefined

/** Receives the unsolicited messages of an upstream. */
export interface SessionHandlers {
  /** The upstream asks a question. @throws RpcError to answer with an error */
  question: (question: Question, origin: Origin) => Promise<Response>
  /** A notification, except progress of an open call. */
  notification: (notification: Notification, origin: Origin) => void
  /**
   * A call is over. Called before any message that the upstream sent after its answer.
   * @param response undefined: it has no answer
   */
  over: (call: Call, response: Response | undefined) => void
  /**
   * Something that the server wrote as `null` or `[]` was mended.
   * @param what of which message
   * @param places paths within it
   */
  mended?: (what: string, places: readonly string[]) => void
  /** The connection is gone, and every call on it has failed. */
  closed: (error: UpstreamError) => void
}

/**
 * One connection to an upstream, independent of the revision of MCP. How a revision implements it (by a handshake or an
 * envelope, by requests or listeners) is left to the adapter of its era: `legacy/`, `modern/`.
 */
export interface UpstreamSession {
  /** Known once `open` has resolved. */
  readonly identity: ServerIdentity
  /** The calls without an answer, oldest first. */
  readonly openCalls: readonly Call[]
  readonly busy: boolean
  readonly closed: boolean
  /**
   * Connects.
   * @param dialled called when the process is spawned or the socket requested
   * @throws UpstreamError, RpcError
   */
  open: (dialled: () => void) => Promise<void>
  /** Sends a request of a client. The answer may be an error. @throws UpstreamError when there is none */
  call: (exchange: Exchange, options: Omit<CallOptions, 'over'>) => Promise<Response>
  /**
   * Sends a request of the gateway's own.
   * @returns the text of its result
   * @throws RpcError the upstream's error; UpstreamError
   */
  request: (method: string, paramsText?: string, timeout?: number) => Promise<string>
  notify: (method: string, paramsText?: string) => void
  /**
   * Subscribes to updates of a resource.
   * @param paramsText params of the client's own request, if there was one
   * @returns the text of the result
   * @throws as `request`
   */
  subscribe: (uri: string, paramsText?: string) => Promise<string>
  unsubscribe: (uri: string, paramsText?: string) => Promise<string>
  /** Requests log messages of this level and above. @throws as `request` */
  setLevel: (level: Level) => Promise<void>
  /** Resolves when the upstream has answered. @param timeout in ms @throws as `request` */
  ping: (timeout: number) => Promise<void>
  /** Ends the connection; resolves when nothing of it is left. */
  close: () => Promise<void>
}
