import type { ClientCapabilities } from './capabilities.ts'
import { code, RpcError } from './errors.ts'
import type { Listener } from './listener.ts'
import type { Response } from './message.ts'

/** HTTP headers by their names in lower case. */
export type Headers = Readonly<Record<string, string | string[] | undefined>>

/**
 * One request of one client, with the means to communicate with the client while it runs. It is the same for all eras
 * of MCP. The answer is not sent through it: the gateway returns or throws it.
 */
export interface Exchange<View = unknown> {
  /** The principal, the servers that it asks for, and the way in which they are shown. */
  readonly view: View
  readonly method: string
  /** `params` parsed, for reading. */
  readonly params: Record<string, unknown>
  /** `params` as received, for relaying. */
  readonly paramsText: string
  /**
   * The request's HTTP headers without the one that authenticated the caller. Read them only where needed: they may be
   * copied.
   */
  readonly headers: Headers
  /** Its `Mcp-Param-*` headers (MCP 2026-07-28), which go on to servers that read any; undefined: it has none. */
  readonly paramHeaders?: Readonly<Record<string, string>> | undefined
  /** The client behind the request. */
  readonly client: Client
  /** The address that the request came from; undefined: it did not come over HTTP. */
  readonly address: string | undefined
  /**
   * The exchange may end with `input_required` and be taken up again by another one (MCP 2026-07-28, "Multi Round-Trip
   * Requests").
   */
  readonly canSuspend: boolean
  /**
   * The reason why the client does not wait for the answer any more: it cancelled, or disconnected for good. Undefined:
   * it waits.
   */
  readonly cancelled: string | undefined
  /**
   * Calls `run` when the client cancels or disconnects for good; at once if it has. It is no AbortSignal, since one per
   * call costs more than the transport of the call.
   */
  onCancel: (run: (reason: string) => void) => void
  /** Sends a notification that belongs to this request. */
  notify: (method: string, paramsText: string) => void
  /**
   * Puts a question to the client on this request's own stream. The answer is relayed as received.
   * @throws RpcError when it left
   */
  ask: (question: Question) => Promise<Response>
  /**
   * Looks at the text of a result before it is answered. Left out: every result is the last one.
   * @returns true where it ends the request but not the call: it asks the client, which sends the request again with
   * its answers
   * @throws RpcError where it asks what the client cannot be asked
   */
  suspends?: (resultText: string) => boolean
  /**
   * The upstream closed this call's stream and is to be polled: closes the client's stream likewise, if it can poll.
   * @param retry in ms
   */
  pause: (retry: number) => void
}

/** A request of an upstream, on its way to a client. */
export interface Question {
  readonly method: string
  readonly params: Record<string, unknown>
  readonly paramsText: string
  /** Aborted when the upstream withdraws the question. */
  readonly signal: AbortSignal
  /**
   * Only timing relates it to the request on whose stream it is sent, so it may still be answered after that request.
   */
  readonly outlivesRequest: boolean
  /**
   * Passes the client's progress on this question to the upstream.
   * @param paramsText params of `notifications/progress`
   */
  progress: (paramsText: string) => void
}

/**
 * The client behind an exchange: its identity, its capabilities, and the ids that separate its links to upstreams from
 * those of others.
 */
export interface Client {
  /** Separates links under `isolation: session`. */
  readonly id: string
  /** Separates links under `isolation: user`. */
  readonly user: string
  /** Identifies the principal, which may have several clients. Undefined: `id` identifies it. */
  readonly principal?: string
  /** The owner to whom the connections that it needs are counted. Undefined: `id`. */
  readonly owner?: string
  /** True: its links are not shared, whatever the server's isolation. */
  readonly ownLinks?: boolean
  /** The client whose links it uses where links are not shared. It outlives this one. Undefined: itself. */
  readonly linksOf?: Client
  readonly capabilities: ClientCapabilities
  /** Receives notifications that belong to no request of the client; undefined: it cannot be notified. */
  readonly listener: Listener | undefined
  /** The headers of a request in flight with this method, as `Exchange.headers`. */
  headersOf?: (method: string) => Headers | undefined
  /**
   * Puts a question that belongs to no request, on a stream that the client holds open.
   * @throws RpcError when there is none
   */
  ask: (question: Question) => Promise<Response>
}

/** One object, since the class of capabilities is remembered by it. */
const noCapabilities: ClientCapabilities = {}

/** A client without capabilities that can be neither asked nor notified: a plain HTTP caller, or the gateway itself. */
export class PlainClient implements Client {
  readonly id: string
  readonly user: string
  readonly principal: string | undefined
  readonly ownLinks: boolean
  readonly owner: string
  readonly capabilities = noCapabilities
  readonly listener = undefined

  constructor (id: string, user: string, principal?: string, ownLinks = false, owner = id) {
    this.id = id
    this.user = user
    this.principal = principal
    this.ownLinks = ownLinks
    this.owner = owner
  }

  async ask (): Promise<Response> {
    throw new RpcError(code.internal, 'The caller is no MCP client and cannot be asked')
  }
}

/** The gateway itself, as a client that declares no capabilities. */
export const plainClient: Client = new PlainClient('gateway', 'gateway')

/** A copy of headers without those of the given names. @param names in lower case */
export function withoutHeaders (headers: Headers, names: readonly string[]): Headers {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name)))
}

/** The members of a derived request that replace those of the original one. */
interface Derivation<View> {
  readonly view: View
  readonly params: Record<string, unknown>
  /** `params` as JSON text, for relaying. */
  readonly paramsText: string
}

/**
 * Another request in place of one that a client sent. It is the same client's, is answered, cancelled, notified of and
 * asked about in the same way, under the client's progress token, and ends with it.
 */
export class DerivedExchange<View> implements Exchange<View> {
  readonly view: View
  readonly params: Record<string, unknown>
  readonly paramsText: string
  readonly #from: Exchange

  constructor (from: Exchange, { view, params, paramsText }: Derivation<View>) {
    this.view = view
    this.params = params
    this.paramsText = paramsText
    this.#from = from
  }

  get method (): string { return this.#from.method }
  get headers (): Headers { return this.#from.headers }
  get paramHeaders (): Exchange['paramHeaders'] { return this.#from.paramHeaders }
  get client (): Client { return this.#from.client }
  get address (): string | undefined { return this.#from.address }
  get canSuspend (): boolean { return this.#from.canSuspend }
  get cancelled (): string | undefined { return this.#from.cancelled }
  onCancel (run: (reason: string) => void): void { this.#from.onCancel(run) }
  notify (method: string, paramsText: string): void { this.#from.notify(method, paramsText) }
  async ask (question: Question): Promise<Response> { return await this.#from.ask(question) }
  suspends (resultText: string): boolean { return this.#from.suspends?.(resultText) === true }
  pause (retry: number): void { this.#from.pause(retry) }
}
