import type { ClientCapabilities } from './capabilities.ts'
import { code, RpcError } from './errors.ts'
import type { Listener } from './listener.ts'
import type { Response } from './message.ts'

/** HTTP headers by their names in lower case. */
export type Headers = Readonly<Record<string, string | string[] | undefined>>

/**
 * One request of one client, and the way to answer it. What the gateway is handed, whatever the client's era.
 * The answer itself is what the gateway returns or throws.
 */
export interface Exchange<View = unknown> {
  /** Who looks, at which servers, and how they are shown. */
  readonly view: View
  readonly method: string
  /** `params` as a value, to read. */
  readonly params: Record<string, unknown>
  /** `params` as the text it came in, to relay. */
  readonly paramsText: string
  /** The request's HTTP headers without the one that authenticated the caller. Read them only where needed: they may be copied. */
  readonly headers: Headers
  /** The client behind the request. */
  readonly client: Client
  /** The address that the request came from; undefined: it did not come over HTTP. */
  readonly address: string | undefined
  /** The exchange may end with `input_required` and be taken up again by another one (MCP 2026-07-28, "Multi Round-Trip Requests"). */
  readonly canSuspend: boolean
  /** Why the client wants no answer any more: it cancelled, or went away for good. Undefined: it still does. */
  readonly cancelled: string | undefined
  /** Runs `run` when the client cancels or goes away for good; at once if it has. (An AbortSignal per call costs more than its transport.) */
  onCancel: (run: (reason: string) => void) => void
  /** Sends a notification that belongs to this request. */
  notify: (method: string, paramsText: string) => void
  /** Asks the client on this request's own stream. The answer is relayed as it came. @throws RpcError when the client went away */
  ask: (question: Question) => Promise<Response>
  /** The upstream closed this call's stream to be polled: lets the client do the same, where it can. @param retry in ms */
  pause: (retry: number) => void
}

/** A request of an upstream, on its way to a client. */
export interface Question {
  readonly method: string
  readonly params: Record<string, unknown>
  readonly paramsText: string
  /** Aborts when the upstream withdraws the question. */
  readonly signal: AbortSignal
  /** Nothing but timing ties it to the request on whose stream it is asked, so it may still be answered after that one. */
  readonly outlivesRequest: boolean
  /** Passes the client's progress on this question to the upstream. @param paramsText params of `notifications/progress` */
  progress: (paramsText: string) => void
}

/** The client behind an exchange: its identity, its capabilities, and what separates its links to upstreams from those of others. */
export interface Client {
  /** Separates links under `isolation: session`. */
  readonly id: string
  /** Separates links under `isolation: user`. */
  readonly user: string
  /** Identifies the principal: one principal may have several clients. Undefined: the id does. */
  readonly principal?: string
  /** It wants links of its own, whatever others share. */
  readonly ownLinks?: boolean
  readonly capabilities: ClientCapabilities
  /** How it hears what belongs to no request of its own; undefined: it cannot be notified of anything. */
  readonly listener: Listener | undefined
  /** The headers of a request of this method that it has in flight, as `Exchange.headers`. */
  headersOf?: (method: string) => Headers | undefined
  /** Asks outside of any request, on a stream that the client holds open. @throws RpcError when there is none */
  ask: (question: Question) => Promise<Response>
}

/** A client that declares nothing and can be neither asked nor notified: a plain HTTP caller, and the gateway itself. */
export class PlainClient implements Client {
  readonly id: string
  readonly user: string
  readonly principal: string | undefined
  readonly ownLinks: boolean
  readonly capabilities = {}
  readonly listener = undefined

  constructor (id: string, user: string, principal?: string, ownLinks = false) {
    this.id = id
    this.user = user
    this.principal = principal
    this.ownLinks = ownLinks
  }

  async ask (): Promise<Response> {
    throw new RpcError(code.internal, 'The caller is no MCP client and cannot be asked')
  }
}

/** The gateway itself: sees what is listed to clients that declare nothing. */
export const plainClient: Client = new PlainClient('gateway', 'gateway')
