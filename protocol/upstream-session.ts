import type { Call, CallOptions } from './call.ts'
import type { ClientCapabilities, ServerCapabilities } from './capabilities.ts'
import type { UpstreamError } from './errors.ts'
import type { Exchange, Question } from './exchange.ts'
import type { LogLevel } from './listener.ts'
import type { Notification, Response } from './message.ts'

/** The identity of a server, as stated when the connection began. */
export interface ServerIdentity {
  /** The MCP revision of the connection. */
  readonly version: string
  readonly capabilities: ServerCapabilities
  /** As JSON text; `{}` when the server states none, which the modern era allows. */
  readonly serverInfo: string
  readonly instructions: string | undefined
  /**
   * The remaining members of the server's `initialize` or `server/discover` result (`_meta` and unknown ones), as the
   * JSON text of an object. Default: none.
   */
  readonly identityExtra?: string
}

/** The identity of the gateway on one connection. */
export interface ClientIdentity {
  readonly clientInfo: { readonly name: string, readonly version: string }
  /** The capabilities of the clients that the connection serves. */
  readonly capabilities: ClientCapabilities
  /** Timeout of the handshake and of the gateway's own requests, in ms. */
  readonly initTimeout: number
  /** Whether the connection serves a single client, which then gets all unsolicited messages. */
  readonly exclusive: boolean
}

/** The call on whose stream a message came; `over`: it has its answer already; undefined: on no call's stream. */
export type MessageOrigin = Call | 'over' | undefined

/** Handles the unsolicited messages of an upstream. */
export interface SessionHandlers {
  /** The upstream sends a question. @throws RpcError to answer with an error */
  question: (question: Question, origin: MessageOrigin) => Promise<Response>
  /** A notification, except progress of an open call. */
  notification: (notification: Notification, origin: MessageOrigin) => void
  /** A call has ended. Called before any later message of the upstream. @param response undefined: there is none */
  callEnded: (call: Call, response: Response | undefined) => void
  /** A `null` or `[]` of the server was mended. @param what names the message @param places paths within it */
  mended?: (what: string, places: readonly string[]) => void
  /** The connection is gone, and every call on it has failed. */
  closed: (error: UpstreamError) => void
}

/**
 * One connection to an upstream, independent of the MCP revision. The adapter of each era (`legacy/`, `modern/`)
 * decides how: by handshake or envelope, by requests or subscriptions.
 */
export interface UpstreamSession {
  /** Known once `open` has resolved. */
  readonly identity: ServerIdentity
  /** The calls without an answer, oldest first. */
  readonly openCalls: readonly Call[]
  readonly busy: boolean
  readonly closed: boolean
  /** Opens the connection. @param onDialled called with the process or the socket @throws UpstreamError, RpcError */
  open: (onDialled: () => void) => Promise<void>
  /** Sends a client's request. The answer may be an error. @throws UpstreamError when there is none */
  call: (exchange: Exchange, options: Omit<CallOptions, 'over'>) => Promise<Response>
  /** Sends the gateway's own request. @returns its result's text @throws RpcError of the upstream; UpstreamError */
  request: (method: string, paramsText?: string, timeout?: number) => Promise<string>
  notify: (method: string, paramsText?: string) => void
  /**
   * Subscribes to updates of a resource.
   * @param paramsText params of the client's own request, if there was one
   * @returns the text of the result
   * @throws the errors of `request`
   */
  subscribe: (uri: string, paramsText?: string) => Promise<string>
  unsubscribe: (uri: string, paramsText?: string) => Promise<string>
  /**
   * Requests log messages of this level and above.
   * @param paramsText params of the client's own request, if there was one; their level is replaced
   * @throws the errors of `request`
   */
  setLevel: (level: LogLevel, paramsText?: string) => Promise<void>
  /** Resolves when the upstream has answered. @param timeout in ms @throws the errors of `request` */
  ping: (timeout: number) => Promise<void>
  /** Ends the connection; resolves when nothing of it is left. */
  close: () => Promise<void>
}
