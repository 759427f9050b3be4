import type { ClientCapabilities } from './capabilities.ts'
import { rpcCode, RpcError } from './errors.ts'
import { memberOf, withMembers } from './json.ts'
import type { Listener } from './listener.ts'
import type { Response } from './message.ts'
import { parseJsonText } from './parse-json-text.ts'

/**
 * How a client supports tasks. `parameter`: it requests a task by the member `task` (MCP 2025-11-25, "Tasks");
 * `extension`: the server may answer any call with a task (`io.modelcontextprotocol/tasks`); undefined: the client does
 * not support tasks.
 */
export type TaskForm = 'parameter' | 'extension' | undefined

/** HTTP headers, by lower-case name. */
export type RequestHeaders = Readonly<Record<string, string | string[] | undefined>>

/**
 * A client's request, and the means to communicate with the client while the request runs; the same for all eras of
 * MCP. The answer is not sent through the exchange: the code that handles the request returns or throws it.
 */
export interface Exchange<View = unknown> {
  /**
   * The principal, the requested scope, and how the scope's servers are presented. The gateway replaces it by a view
   * without hidden items before it handles the request.
   */
  view: View
  readonly method: string
  /** `params`, parsed, for reading. */
  readonly params: Record<string, unknown>
  /** `params` as received, for relaying. */
  readonly paramsText: string
  /**
   * The request's HTTP headers, without the caller's credential. May be a getter that copies them, so read it only if
   * necessary.
   */
  readonly headers: RequestHeaders
  /** The request's `Mcp-Param-*` headers (MCP 2026-07-28), forwarded to servers that use any; undefined: none. */
  readonly paramHeaders?: Readonly<Record<string, string>> | undefined
  /** The client that sent the request. */
  readonly client: Client
  /** The address that the request came from; undefined when it did not come over HTTP. */
  readonly address: string | undefined
  /**
   * Whether the answer may be `input_required`, after which the client continues (MCP 2026-07-28, "Multi Round-Trip
   * Requests").
   */
  readonly canSuspend: boolean
  /** The form in which the client uses tasks in this request. Default: it does not support tasks. */
  readonly taskForm?: TaskForm
  /** Why the client does not wait for the answer: it cancelled, or disconnected for good. Undefined: it waits. */
  readonly cancelled: string | undefined
  /** Params of the client's `notifications/cancelled`, if it sent one. */
  readonly cancelParams?: string | undefined
  /**
   * Calls `run` when the client cancels or disconnects for good; immediately if it already has. An AbortSignal for each
   * call would cost more CPU time than transporting the call.
   */
  onCancel: (run: (reason: string) => void) => void
  /** Sends the client a notification that belongs to this request. */
  notify: (method: string, paramsText: string) => void
  /**
   * Sends the client a question on this request's stream. The answer is relayed as received.
   * @throws RpcError if the client has disconnected
   */
  ask: (question: Question) => Promise<Response>
  /**
   * Whether a result is not final: it asks the client for input, and the client sends the request again with its
   * answers. Called before the result is sent. If absent, every result is final.
   * @throws RpcError if the client lacks the capability for that input
   */
  suspendsOn?: (resultText: string) => boolean
  /**
   * Closes the client's stream if the client can poll. Called when the upstream wants to be polled.
   * @param retry the time until the client should poll, in ms
   */
  pause: (retry: number) => void
}

/** Returns the arguments of a request as JSON text, as received. */
export const argumentsTextOf = ({ paramsText }: Pick<Exchange, 'paramsText'>): string =>
  memberOf(paramsText, 'arguments') ?? '{}'

/** A request from an upstream to a client. */
export interface Question {
  readonly method: string
  readonly params: Record<string, unknown>
  readonly paramsText: string
  /** Aborted when the upstream withdraws the question. */
  readonly signal: AbortSignal
  /** Whether the question may stay open after the end of the request on whose stream it is sent. */
  readonly outlivesRequest: boolean
  /** Returns params of the upstream's `notifications/cancelled`, if it withdrew the question with one. */
  readonly withdrawal?: () => string | undefined
  /** Forwards the client's progress to the upstream. @param paramsText params of `notifications/progress` */
  progress: (paramsText: string) => void
}

/** A client: its identity, its capabilities, and the ids that decide which upstream links it shares. */
export interface Client {
  /** Clients with different ids have different links to servers with `isolation: session`. */
  readonly id: string
  /** Clients with different users have different links to servers with `isolation: user`. */
  readonly user: string
  /** Identifies the principal, which may use several clients. Default: `id`. */
  readonly principalKey?: string
  /** The owner whose share the client's connections count against. Default: `id`. */
  readonly owner?: string
  /** Whether the client's links are never shared, whatever the servers' isolation settings are. */
  readonly hasOwnLinks?: boolean
  /** A longer-lived client whose unshared links this client uses. Default: this client itself. */
  readonly linkOwner?: Client
  readonly capabilities: ClientCapabilities
  /** Receives notifications that belong to no request; undefined: the client cannot receive such notifications. */
  readonly listener: Listener | undefined
  /** Returns the headers of an open request with this method, as in `Exchange.headers`; undefined: there is none. */
  headersOf?: (method: string) => RequestHeaders | undefined
  /**
   * Sends a question that belongs to no request on a stream that the client keeps open.
   * @throws RpcError if there is no such stream
   */
  ask: (question: Question) => Promise<Response>
}

/** One object for all clients without capabilities, since `capabilityClassOf` caches its results by object. */
const noCapabilities: ClientCapabilities = {}

/**
 * A client without capabilities, which receives neither questions nor notifications: a plain HTTP caller, or the
 * gateway itself.
 */
export class NonMcpClient implements Client {
  readonly id: string
  readonly user: string
  readonly principalKey: string | undefined
  readonly hasOwnLinks: boolean
  readonly owner: string
  readonly capabilities = noCapabilities
  readonly listener = undefined

  /** The parameters are described in `Client`. */
  constructor (id: string, user: string, principalKey?: string, hasOwnLinks = false, owner = id) {
    this.id = id
    this.user = user
    this.principalKey = principalKey
    this.hasOwnLinks = hasOwnLinks
    this.owner = owner
  }

  async ask (): Promise<Response> {
    throw new RpcError(rpcCode.internal, 'The caller is not an MCP client and cannot receive requests')
  }
}

/** The gateway itself as a client without capabilities. */
export const gatewayClient: Client = new NonMcpClient('gateway', 'gateway')

/** Copies headers except the given ones. @param names the names of the headers to omit, in lower case */
export function omitHeaders (headers: RequestHeaders, names: readonly string[]): RequestHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name)))
}

interface UnattendedParts<View> {
  readonly view: View
  readonly client: Client
  readonly method: string
  readonly params: Record<string, unknown>
  /** Default: the JSON text of `params`. */
  readonly paramsText?: string
  readonly headers?: RequestHeaders
  readonly address?: string | undefined
  readonly taskForm?: TaskForm
}

/**
 * A request without a stream to its client: notifications are dropped, and questions are asked as those that belong to
 * no request.
 */
export class UnattendedExchange<View> implements Exchange<View> {
  view: View
  readonly client: Client
  readonly method: string
  readonly params: Record<string, unknown>
  readonly paramsText: string
  readonly headers: RequestHeaders
  readonly address: string | undefined
  readonly taskForm: TaskForm
  readonly canSuspend = false
  cancelled: string | undefined
  readonly #onCancel: Array<(reason: string) => void> = []

  constructor (parts: UnattendedParts<View>) {
    this.view = parts.view
    this.client = parts.client
    this.method = parts.method
    this.params = parts.params
    this.paramsText = parts.paramsText ?? JSON.stringify(parts.params)
    this.headers = parts.headers ?? {}
    this.address = parts.address
    this.taskForm = parts.taskForm
  }

  onCancel (run: (reason: string) => void): void {
    if (this.cancelled === undefined) this.#onCancel.push(run)
    else run(this.cancelled)
  }

  /** Cancels the request, for example because the caller has disconnected. */
  cancel (reason: string): void {
    if (this.cancelled !== undefined) return
    this.cancelled = reason
    for (const run of this.#onCancel) run(reason)
  }

  notify (): void {}
  pause (): void {}
  async ask (question: Question): Promise<Response> { return await this.client.ask(question) }
}

/** The members of a derived request that differ from the original's. */
interface Derivation<View> {
  readonly view: View
  readonly params: Record<string, unknown>
  /** `params` as JSON text, for relaying. */
  readonly paramsText: string
  /** Default: the original's method. */
  readonly method?: string
}

/** Derives a `tools/call` or `prompts/get` request with other arguments. @param text the arguments, as JSON text */
export function withArguments<View> (exchange: Exchange<View>, text: string): Exchange<View> {
  return new DerivedExchange(exchange, {
    view: exchange.view,
    params: { ...exchange.params, arguments: parseJsonText(text) },
    paramsText: withMembers(exchange.paramsText, { arguments: text })
  })
}

/**
 * A request that is sent in place of a client's request. Notifications, questions and cancellation are those of the
 * original, and it ends with the original.
 */
export class DerivedExchange<View> implements Exchange<View> {
  view: View
  readonly params: Record<string, unknown>
  readonly paramsText: string
  readonly method: string
  readonly #original: Exchange

  constructor (from: Exchange, { view, params, paramsText, method = from.method }: Derivation<View>) {
    this.method = method
    this.view = view
    this.params = params
    this.paramsText = paramsText
    this.#original = from
  }

  /** The client's request. */
  get original (): Exchange { return this.#original }
  get headers (): RequestHeaders { return this.#original.headers }
  get paramHeaders (): Exchange['paramHeaders'] { return this.#original.paramHeaders }
  get client (): Client { return this.#original.client }
  get address (): string | undefined { return this.#original.address }
  get canSuspend (): boolean { return this.#original.canSuspend }
  get taskForm (): TaskForm { return this.#original.taskForm }
  get cancelled (): string | undefined { return this.#original.cancelled }
  get cancelParams (): string | undefined { return this.#original.cancelParams }
  onCancel (run: (reason: string) => void): void { this.#original.onCancel(run) }
  notify (method: string, paramsText: string): void { this.#original.notify(method, paramsText) }
  async ask (question: Question): Promise<Response> { return await this.#original.ask(question) }
  suspendsOn (resultText: string): boolean { return this.#original.suspendsOn?.(resultText) === true }
  pause (retry: number): void { this.#original.pause(retry) }
}
