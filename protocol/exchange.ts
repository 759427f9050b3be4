import type { ClientCapabilities } from './capabilities.ts'
import { code, RpcError } from './errors.ts'
import { withMembers } from './json.ts'
import type { Listener } from './listener.ts'
import type { Response } from './message.ts'

/**
 * How a client takes a task in place of a result: `parameter`, as it asks by the member `task` (MCP 2025-11-25,
 * "Tasks"); `extension`, whenever the server answers with one (`io.modelcontextprotocol/tasks`). Undefined: it waits
 * for results.
 */
export type TaskForm = 'parameter' | 'extension' | undefined

/** HTTP headers by name in lower case. */
export type RequestHeaders = Readonly<Record<string, string | string[] | undefined>>

/**
 * One request of one client, and the means to communicate with that client while it runs; the same for all eras of MCP.
 * The answer does not go through it: the gateway returns or throws it.
 */
export interface Exchange<View = unknown> {
  /** The principal, the scope it asks for, and the presentation of the servers in it. */
  readonly view: View
  readonly method: string
  /** `params`, parsed, for reading. */
  readonly params: Record<string, unknown>
  /** `params` as received, for relaying. */
  readonly paramsText: string
  /** The request's HTTP headers, without the caller's credential. Read them only when needed: they may be copied. */
  readonly headers: RequestHeaders
  /** Its `Mcp-Param-*` headers (MCP 2026-07-28), which are forwarded to servers that read any; undefined: none. */
  readonly paramHeaders?: Readonly<Record<string, string>> | undefined
  /** The client behind the request. */
  readonly client: Client
  /** The address that the request came from; undefined when it did not come over HTTP. */
  readonly address: string | undefined
  /** Whether it may end with `input_required` and be continued (MCP 2026-07-28, "Multi Round-Trip Requests"). */
  readonly canSuspend: boolean
  /** How the client takes a task in answer to this request, or speaks of one in it. Default: it takes none. */
  readonly taskForm?: TaskForm
  /** Why the client no longer waits for the answer: it cancelled, or disconnected for good. Undefined: it waits. */
  readonly cancelled: string | undefined
  /** Params of the client's `notifications/cancelled`, if it sent one. */
  readonly cancelParams?: string | undefined
  /**
   * Calls `run` when the client cancels or disconnects for good; at once if it has. Not an AbortSignal, since one per
   * call costs more than the transport of the call.
   */
  onCancel: (run: (reason: string) => void) => void
  /** Sends a notification of this request. */
  notify: (method: string, paramsText: string) => void
  /**
   * Sends a question to the client on this request's own stream. The answer is relayed as received.
   * @throws RpcError when the client has disconnected
   */
  ask: (question: Question) => Promise<Response>
  /**
   * Examines the text of a result before it is sent. Absent: every result is final.
   * @returns true when the result ends the request but not the call: it asks the client for input, and the client sends
   * the request again with its answers
   * @throws RpcError when the client lacks the capability for that input
   */
  suspendsOn?: (resultText: string) => boolean
  /** The upstream expects polling: closes the client's stream as well, if the client can poll. @param retry in ms */
  pause: (retry: number) => void
}

/** A request of an upstream to a client. */
export interface Question {
  readonly method: string
  readonly params: Record<string, unknown>
  readonly paramsText: string
  /** Aborted when the upstream withdraws the question. */
  readonly signal: AbortSignal
  /** Whether it may be answered after the request on whose stream it is sent: only timing relates the two. */
  readonly outlivesRequest: boolean
  /** Params of the upstream's `notifications/cancelled`, once it withdraws the question by one. */
  withdrawal?: string
  /** Forwards the client's progress to the upstream. @param paramsText params of `notifications/progress` */
  progress: (paramsText: string) => void
}

/** The client behind an exchange: identity, capabilities, and the ids that separate its upstream links. */
export interface Client {
  /** Separates links under `isolation: session`. */
  readonly id: string
  /** Separates links under `isolation: user`. */
  readonly user: string
  /** Identifies the principal, which may have several clients. Default: `id`. */
  readonly principalKey?: string
  /** The owner that its connections count for. Default: `id`. */
  readonly owner?: string
  /** Whether its links are never shared, whatever the server's isolation. */
  readonly hasOwnLinks?: boolean
  /** The longer-lived client whose unshared links it uses. Default: itself. */
  readonly linkOwner?: Client
  readonly capabilities: ClientCapabilities
  /** Receives notifications that belong to no request; undefined: the client cannot receive any. */
  readonly listener: Listener | undefined
  /** The headers of a request in flight with this method, as `Exchange.headers`. */
  headersOf?: (method: string) => RequestHeaders | undefined
  /** Sends a question of no request on a stream that the client holds open. @throws RpcError when there is none */
  ask: (question: Question) => Promise<Response>
}

/** A single object, since `capabilityClassOf` caches by object. */
const noCapabilities: ClientCapabilities = {}

/** A client without capabilities, questions and notifications: a plain HTTP caller, or the gateway itself. */
export class PlainClient implements Client {
  readonly id: string
  readonly user: string
  readonly principalKey: string | undefined
  readonly hasOwnLinks: boolean
  readonly owner: string
  readonly capabilities = noCapabilities
  readonly listener = undefined

  constructor (id: string, user: string, principal?: string, ownLinks = false, owner = id) {
    this.id = id
    this.user = user
    this.principalKey = principal
    this.hasOwnLinks = ownLinks
    this.owner = owner
  }

  async ask (): Promise<Response> {
    throw new RpcError(code.internal, 'The caller is no MCP client and cannot be asked')
  }
}

/** The gateway itself, as a client without capabilities. */
export const gatewayClient: Client = new PlainClient('gateway', 'gateway')

/** A copy of headers without the given names. @param names in lower case */
export function withoutHeaders (headers: RequestHeaders, names: readonly string[]): RequestHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name)))
}

/** The members of a derived request that replace those of the original. */
interface Derivation<View> {
  readonly view: View
  readonly params: Record<string, unknown>
  /** `params` as JSON text, for relaying. */
  readonly paramsText: string
  /** Default: that of the original. */
  readonly method?: string
}

/** The same `tools/call` or `prompts/get` with other arguments. @param text the arguments as JSON */
export function withArguments<View> (exchange: Exchange<View>, text: string): Exchange<View> {
  return new DerivedExchange(exchange, {
    view: exchange.view,
    params: { ...exchange.params, arguments: JSON.parse(text) as unknown },
    paramsText: withMembers(exchange.paramsText, { arguments: text })
  })
}

/**
 * A request that replaces one of a client. It has the same client, progress token, notifications, questions and
 * cancellation, and ends with the original.
 */
export class DerivedExchange<View> implements Exchange<View> {
  readonly view: View
  readonly params: Record<string, unknown>
  readonly paramsText: string
  readonly method: string
  readonly #from: Exchange

  constructor (from: Exchange, { view, params, paramsText, method = from.method }: Derivation<View>) {
    this.method = method
    this.view = view
    this.params = params
    this.paramsText = paramsText
    this.#from = from
  }

  /** The request that it replaces. */
  get original (): Exchange { return this.#from }
  get headers (): RequestHeaders { return this.#from.headers }
  get paramHeaders (): Exchange['paramHeaders'] { return this.#from.paramHeaders }
  get client (): Client { return this.#from.client }
  get address (): string | undefined { return this.#from.address }
  get canSuspend (): boolean { return this.#from.canSuspend }
  get taskForm (): TaskForm { return this.#from.taskForm }
  get cancelled (): string | undefined { return this.#from.cancelled }
  get cancelParams (): string | undefined { return this.#from.cancelParams }
  onCancel (run: (reason: string) => void): void { this.#from.onCancel(run) }
  notify (method: string, paramsText: string): void { this.#from.notify(method, paramsText) }
  async ask (question: Question): Promise<Response> { return await this.#from.ask(question) }
  suspendsOn (resultText: string): boolean { return this.#from.suspendsOn?.(resultText) === true }
  pause (retry: number): void { this.#from.pause(retry) }
}
