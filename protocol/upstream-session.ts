import type { Call, CallOptions } from './call.ts'
import type { ClientCapabilities, ServerCapabilities } from './capabilities.ts'
import type { UpstreamError } from './errors.ts'
import type { Exchange, Question } from './exchange.ts'
import type { LogLevel } from './listener.ts'
import type { Notification, Response } from './message.ts'

/** What a server states about itself when the gateway connects to it. */
export interface ServerIdentity {
  /** The MCP revision of the connection. */
  readonly version: string
  readonly capabilities: ServerCapabilities
  /** As JSON text; `{}` if the server does not state it, which the modern era allows. */
  readonly serverInfo: string
  readonly instructions: string | undefined
  /**
   * The remaining members of the server's `initialize` or `server/discover` result (`_meta` and unknown ones), as the
   * JSON text of an object. Default: none.
   */
  readonly identityExtra?: string
}

/** How the gateway presents itself on a connection, and whom the connection serves. */
export interface ClientIdentity {
  readonly clientInfo: { readonly name: string, readonly version: string }
  /** The capabilities of the clients that the connection serves. */
  readonly capabilities: ClientCapabilities
  /** Timeout of the handshake and of the gateway's own requests, in ms. */
  readonly initTimeout: number
  /** Whether the connection serves a single client, which then gets all unsolicited messages. */
  readonly exclusive: boolean
}

/**
 * The call on whose stream a message arrived; `over` if the call has ended. Undefined if there is no such call, or if
 * the call has ended and the connection serves a single client.
 */
export type MessageOrigin = Call | 'over' | undefined

/** Handlers for the messages of an upstream. */
export interface SessionHandlers {
  /** Called with a question of the upstream. @throws RpcError to answer with an error */
  question: (question: Question, origin: MessageOrigin) => Promise<Response>
  /** Called with a notification, unless the session handles it itself, such as the progress of an open call. */
  notification: (notification: Notification, origin: MessageOrigin) => void
  /** Called when a call has ended, before any later message is handled. @param response undefined if there is none */
  callEnded: (call: Call, response: Response | undefined) => void
  /** Called when a message was repaired. @param what the kind of message @param places paths of repaired values */
  mended?: (what: string, places: readonly string[]) => void
  /** Called when the connection is closed and all its calls have failed. */
  closed: (error: UpstreamError) => void
}

/**
 * One connection to an upstream, independent of the MCP revision. There is an implementation for each era, in `legacy/`
 * and `modern/`.
 */
export interface UpstreamSession {
  /** Known once `open` has resolved. */
  readonly identity: ServerIdentity
  /** The unanswered calls, oldest first. */
  readonly openCalls: readonly Call[]
  /** Whether any call is unanswered. */
  readonly busy: boolean
  readonly closed: boolean
  /** Opens the connection. @param onDialled called when a process or socket is open @throws UpstreamError, RpcError */
  open: (onDialled: () => void) => Promise<void>
  /** Sends a client's request. @returns the answer, which may be an error @throws UpstreamError if there is none */
  call: (exchange: Exchange, options: Omit<CallOptions, 'onEnd'>) => Promise<Response>
  /**
   * Sends one of the gateway's own requests.
   * @returns the result's text
   * @throws RpcError from the upstream; UpstreamError
   */
  request: (method: string, paramsText?: string, timeout?: number) => Promise<string>
  notify: (method: string, paramsText?: string) => void
  /**
   * Subscribes to updates of a resource.
   * @param paramsText params of the client's request, if there was one
   * @returns the result, as JSON text
   * @throws the errors of `request`
   */
  subscribe: (uri: string, paramsText?: string) => Promise<string>
  unsubscribe: (uri: string, paramsText?: string) => Promise<string>
  /**
   * Requests log messages of this level and above.
   * @param paramsText params of the client's request, if there was one; the level in it is replaced
   * @throws the errors of `request`
   */
  setLevel: (level: LogLevel, paramsText?: string) => Promise<void>
  /** Resolves when the upstream has answered. @param timeout in ms @throws the errors of `request` */
  ping: (timeout: number) => Promise<void>
  /** Closes the connection; resolves when all its resources are released. */
  close: () => Promise<void>
}
