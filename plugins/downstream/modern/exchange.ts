import { hasTasksExtension } from '../../../protocol/capabilities.ts'
import { rpcCode, RpcError } from '../../../protocol/errors.ts'
import {
  type Exchange, type RequestHeaders, type Question, type TaskForm, omitHeaders
} from '../../../protocol/exchange.ts'
import { isStreamNotification, streamMethod, withStreamId } from '../../../protocol/events.ts'
import { passesLogLevel, type LogLevel } from '../../../protocol/listener.ts'
import { notificationText, type Response } from '../../../protocol/message.ts'
import { mayRequireInput } from '../../../protocol/modern/envelope.ts'
import type { View } from '../../settings/index.ts'
import { memoryOfJson } from '../../base/body/index.ts'
import { answerParts } from '../answer-parts.ts'
import type { HttpRequestContext } from '../endpoint.ts'
import type { ReplyChannel } from '../reply-channel.ts'
import { resultRequiresInput } from './input-request.ts'
import type { ModernClient } from './leases.ts'
import type { RequestOutcome } from './errors.ts'
import { toModernResult } from './result.ts'
import type { ParkedCalls } from './parked-calls.ts'
import type { ParkedCall } from './parked-call.ts'
import { forwardedParamHeaders } from './param-headers.ts'
import type { ModernRequest } from './request.ts'

interface WaitingRequest { readonly idText: string, readonly reply: ReplyChannel }

/** Notifications of legacy servers that modern clients do not know. */
const legacyNotifications: ReadonlySet<string> = new Set([
  'notifications/cancelled', 'notifications/elicitation/complete', 'notifications/tasks/status'
])

interface ModernExchangeOptions {
  readonly client: ModernClient
  readonly view: View
  readonly origin: HttpRequestContext
  readonly parked: ParkedCalls<ModernExchange>
  /** Returns the `serverInfo` of the answering server, as JSON text, if known. */
  readonly serverInfo: () => string | undefined
  /** Whether a header value contains a credential for this gateway. Such a value must not be forwarded. */
  readonly isOwnCredential: (value: string) => boolean
}

/**
 * One request of a modern client. A question to the client *parks* it: the waiting request is answered with
 * `input_required`, and the exchange continues without a reply until the client sends the answers in a new request with
 * the state.
 */
export class ModernExchange implements Exchange<View> {
  view: View
  readonly method: string
  readonly client: ModernClient
  readonly canSuspend: boolean
  params: Record<string, unknown>
  paramsText: string
  capabilities: ModernRequest['capabilities']
  /** The memory that the capabilities take, in bytes. */
  #capabilitiesMemory: number
  cancelled: string | undefined
  readonly #options: ModernExchangeOptions
  readonly #onCancel: Array<(reason: string) => void> = []
  #logLevel: LogLevel | undefined
  #waiting: WaitingRequest[] = []
  #parked: ParkedCall<ModernExchange> | undefined
  #isInputRequired = false
  #over = false

  constructor (request: ModernRequest, options: ModernExchangeOptions) {
    this.view = options.view
    this.method = request.method
    this.client = options.client
    this.canSuspend = mayRequireInput(request.method)
    this.params = request.params
    this.paramsText = request.paramsText
    this.capabilities = request.capabilities
    this.#capabilitiesMemory = request.capabilitiesMemory
    this.#logLevel = request.logLevel
    this.#options = options
  }

  // The headers are copied only when they are used, since few servers receive them.
  get headers (): RequestHeaders {
    const { headers, credentialHeader } = this.#options.origin
    return credentialHeader === undefined ? headers : omitHeaders(headers, [credentialHeader])
  }

  get paramHeaders (): Record<string, string> | undefined {
    const { origin: { headers, credentialHeader }, isOwnCredential } = this.#options
    return forwardedParamHeaders(headers, credentialHeader, isOwnCredential)
  }

  get address (): string { return this.#options.origin.address }
  get taskForm (): TaskForm { return hasTasksExtension(this.capabilities) ? 'extension' : undefined }
  get memory (): number { return memoryOfJson(this.paramsText) + this.#capabilitiesMemory }
  get serverInfo (): string | undefined { return this.#options.serverInfo() }

  /** Whether a request waits for the answer; false while the exchange is parked. */
  get isAwaited (): boolean { return this.#waiting.length > 0 }
  /** Whether the server's result requests input from the client. */
  get isInputRequired (): boolean { return this.#isInputRequired }
  /** Whether the exchange has been answered or cancelled. */
  get isOver (): boolean { return this.#over }

  /**
   * Adds a request that waits for the answer: the first request, or one that resumes the exchange. Its params and
   * capabilities replace those of the previous request.
   */
  attach (
    { params, paramsText, capabilities, capabilitiesMemory, logLevel, idText }: ModernRequest, reply: ReplyChannel
  ): void {
    this.capabilities = capabilities
    this.#capabilitiesMemory = capabilitiesMemory
    this.params = params
    this.paramsText = paramsText
    this.#logLevel = logLevel
    this.#waiting.push({ idText, reply })
  }

  /**
   * Records that the exchange starts from a `requestState` to which no parked call belongs.
   * @param id the id of the state (`RequestStateSealer.idOf`)
   * @param answersText the request's `inputResponses`, as JSON text
   */
  beginFromState (id: string, answersText: string): void {
    this.#parked = this.#options.parked.begin(this, id, answersText)
  }

  /** Undoes `beginFromState` if the state is invalid. */
  undoBegin (): void {
    this.#parked?.forget()
    this.#parked = undefined
  }

  /** Handles a disconnection before the answer: cancels the exchange unless another request still waits for it. */
  onDisconnect (reply: ReplyChannel): void {
    this.#waiting = this.#waiting.filter((each) => each.reply !== reply)
    if (this.#waiting.length === 0) this.cancel('the client went away')
  }

  onCancel (run: (reason: string) => void): void {
    if (this.cancelled === undefined) this.#onCancel.push(run)
    else run(this.cancelled)
  }

  notify (method: string, paramsText: string): void {
    const newest = this.#waiting.at(-1)
    if (this.#over || !newest || legacyNotifications.has(method)) return
    // Without a level, the client wants no log messages.
    if (method === 'notifications/message' && (this.#logLevel === undefined ||
        !passesLogLevel(this.#logLevel, method, paramsText))) return
    const text = isStreamNotification(method) ? withStreamId(paramsText, newest.idText) : paramsText
    newest.reply.send(notificationText(method, text))
  }

  async ask (question: Question): Promise<Response> {
    if (this.#over) throw new RpcError(rpcCode.internal, 'The request has ended', 'internal')
    if (!this.canSuspend) throw new RpcError(rpcCode.methodNotFound, `The client cannot be asked during ${this.method}`)
    this.#parked ??= this.#options.parked.park(this)
    return await this.#parked.ask(question)
  }

  suspendsOn (resultText: string): boolean {
    this.#isInputRequired = resultRequiresInput(this.client.capabilities, this.method, resultText)
    return this.#isInputRequired
  }

  pause (): void {}

  /** Answers the waiting requests with an `input_required` result; the exchange continues. @param text the result */
  suspend (text: string): void { this.#answer({ kind: 'result', text, status: 200 }) }

  /** Answers the waiting requests with an outcome that was kept for them. */
  deliver (outcome: RequestOutcome): void { this.#answer(outcome) }

  /** Sends the answer and ends the exchange. */
  finish (outcome: RequestOutcome): void {
    if (this.#over) return
    this.#over = true
    this.#parked?.onFinished(outcome)
    this.#answer(outcome)
  }

  /** Cancels the request: the client gets no answer. */
  cancel (reason: string): void {
    if (this.#over) return
    this.#over = true
    this.cancelled = reason
    this.#parked?.onFinished(undefined)
    for (const { reply } of this.#waiting.splice(0)) reply.finish(undefined)
    for (const run of this.#onCancel) run(reason)
  }

  /** Cancels the request because the gateway ends it, and answers with the error. */
  end (error: RpcError): void {
    // An event stream ends without an error: its client was notified of lost access, or opens another stream.
    this.endStream()
    if (this.#over) return
    this.#over = true
    this.cancelled = error.message
    this.#parked?.onFinished(undefined)
    this.#answer({ kind: 'error', text: error.toText(), status: 200 })
    for (const run of this.#onCancel) run(error.message)
  }

  /** Ends an event stream without an error; its client opens another one. */
  endStream (): void {
    if (this.#over || this.method !== streamMethod) return
    this.#over = true
    this.cancelled = 'the stream has ended'
    this.#answer({ kind: 'result', text: toModernResult('{}', this.serverInfo), status: 200 })
    for (const run of this.#onCancel) run(this.cancelled)
  }

  #answer ({ kind, text, status }: RequestOutcome): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const { idText, reply } of waiting) {
      const isStream = this.method === streamMethod && kind === 'result'
      const own = isStream ? withStreamId(String(text), idText) : text
      reply.finish(answerParts(`{"jsonrpc":"2.0","id":${idText},"${kind}":`, own), status)
    }
  }
}
