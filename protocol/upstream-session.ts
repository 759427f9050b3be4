import type { Call, CallOptions } from './call.ts'
import type { ClientCapabilities, ServerCapabilities } from './capabilities.ts'
import type { UpstreamError } from './errors.ts'
import type { Exchange, Question } from './exchange.ts'
import type { Level } from './listener.ts'
import type { Notification, Response } from './message.ts'

/** What a server says of itself when a connection to it begins. */
export interface ServerIdentity {
  /** The MCP revision that both sides speak. */
  readonly version: string
  readonly capabilities: ServerCapabilities
  /** As JSON text. */
  readonly serverInfo: string
  readonly instructions: string | undefined
}

/** How the gateway introduces itself on one connection. */
export interface ClientIdentity {
  readonly clientInfo: { readonly name: string, readonly version: string }
  /** The capabilities of the clients that the connection is for. */
  readonly capabilities: ClientCapabilities
  /** For the handshake and for requests of the gateway's own, in ms. */
  readonly initTimeout: number
  /** The connection serves one client only: what comes on a stream of its own, or of no request, is for that client. */
  readonly exclusive: boolean
}

/** The call on whose stream something came; `over`: that call has been answered already; undefined: it came on no call's stream. */
export type Origin = Call | 'over' | undefined

/** What an upstream sends unasked. */
export interface SessionHandlers {
  /** The upstream asks something. @throws RpcError to answer it with an error */
  question: (question: Question, origin: Origin) => Promise<Response>
  /** A notification that is not progress of an open call. */
  notification: (notification: Notification, origin: Origin) => void
  /** A call is over. Told before anything that the upstream sent after its answer; undefined: it has no answer. */
  over: (call: Call, response: Response | undefined) => void
  /** The connection is gone, and every call on it has failed. */
  closed: (error: UpstreamError) => void
}

/**
 * One connection to an upstream, in the words that all revisions of MCP share. What a revision makes of them (a handshake or an
 * envelope, requests or listeners) is its adapter's: `legacy/`, `modern/`.
 */
export interface UpstreamSession {
  /** Known once `open` has resolved. */
  readonly identity: ServerIdentity
  /** The calls without an answer, oldest first. */
  readonly openCalls: readonly Call[]
  readonly busy: boolean
  readonly closed: boolean
  /** Connects. @param dialled called when the process is spawned or the socket asked for @throws UpstreamError, RpcError */
  open: (dialled: () => void) => Promise<void>
  /** One request of a client. The answer may be an error. @throws UpstreamError when none comes */
  call: (exchange: Exchange, options: Omit<CallOptions, 'over'>) => Promise<Response>
  /** One request of the gateway's own; the text of its result. @throws RpcError the upstream's error, UpstreamError when none comes */
  request: (method: string, paramsText?: string, timeout?: number) => Promise<string>
  notify: (method: string, paramsText?: string) => void
  /** Asks for updates of a resource; the text of the result. @param paramsText the client's own, where there are any @throws as `request` */
  subscribe: (uri: string, paramsText?: string) => Promise<string>
  unsubscribe: (uri: string, paramsText?: string) => Promise<string>
  /** Asks for log messages from a level on. @throws as `request` */
  setLevel: (level: Level) => Promise<void>
  /** Resolves when the upstream gave a sign of life. @param timeout in ms @throws as `request` */
  ping: (timeout: number) => Promise<void>
  /** Ends the connection; resolves when nothing of it is left. */
  close: () => Promise<void>
}
