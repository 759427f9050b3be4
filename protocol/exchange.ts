import type { ClientCapabilities } from './legacy/capabilities.ts'
import type { Level } from './listener.ts'
import type { Response } from './message.ts'

/**
 * One request of one client, and the way to answer it. What the gateway is handed, whatever the client's era.
 * The answer itself is what the gateway returns or throws.
 */
export interface Exchange<View = unknown> {
  /** Who looks, through which route. */
  readonly view: View
  readonly method: string
  /** `params` as a value, to read. */
  readonly params: Record<string, unknown>
  /** `params` as the text it came in, to relay. */
  readonly paramsText: string
  /** The client's HTTP headers, lower case, without the one that told the gateway who is asking. To be read where they are needed only. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** Who is asking and can be asked. */
  readonly client: Client
  /** Why the client wants no answer any more: it cancelled, or went away for good. Undefined: it still does. */
  readonly cancelled: string | undefined
  /** Runs when the client cancels, or goes away for good; an AbortSignal for each call would cost more than its transport. */
  onCancel: (run: (reason: string) => void) => void
  /** Sends a notification that belongs to this request. */
  notify: (method: string, paramsText: string) => void
  /** Asks the client on this request's own stream. The answer is relayed as it came. @throws RpcError when the client went away */
  ask: (question: Question) => Promise<Response>
  /** The upstream closed this call's stream to be polled: let the client do the same, where it can. `retry` in ms. */
  pause: (retry: number) => void
}

/** A request of an upstream, on its way to a client. */
export interface Question {
  readonly method: string
  readonly params: Record<string, unknown>
  readonly paramsText: string
  /** Aborts when the upstream withdraws the question. */
  readonly signal: AbortSignal
  /** It may be answered after the request on whose stream it is asked: nothing but the timing tied it to that one. */
  readonly outlives: boolean
  /** What the client says of its progress goes back to the upstream. */
  progress: (paramsText: string) => void
}

/** The client behind an exchange, in so far as an upstream can talk to it: a legacy session. */
export interface Client {
  /** What one isolation separates: the session. */
  readonly id: string
  /** What the user isolation separates. */
  readonly user: string
  /** It wants connections of its own, whatever others share. */
  readonly alone?: boolean
  /** It can be told nothing, so it misses nothing. */
  readonly deaf?: boolean
  /** Tells principals apart, where the id does not: a principal may have several sessions. */
  readonly principal?: string
  /** The headers of a request of this method that it has in flight, as `Exchange.headers`. */
  headersOf?: (method: string) => Exchange['headers'] | undefined
  readonly capabilities: ClientCapabilities
  /** The lowest log level this client wants, if it said so. */
  level: Level | undefined
  /** Asks outside of any request, on a stream that the client holds open. @throws RpcError when none can be had */
  ask: (question: Question) => Promise<Response>
  /** Tells outside of any request. */
  notify: (method: string, paramsText: string) => void
}
