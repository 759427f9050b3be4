import { rpcCode, RpcError } from '../../../protocol/errors.ts'
import {
  type Client, type Exchange, type RequestHeaders, type Question, type TaskForm, omitHeaders
} from '../../../protocol/exchange.ts'
import { passesLogLevel } from '../../../protocol/listener.ts'
import { errorResponseText, notificationText, type Request, type Response } from '../../../protocol/message.ts'
import type { View } from '../../settings/index.ts'
import { answerParts } from '../answer-parts.ts'
import type { HttpRequestContext } from '../endpoint.ts'
import type { AskClient, ReplyChannel } from '../reply-channel.ts'

/** A legacy client, which receives questions as JSON-RPC requests. */
export interface AskableClient extends Client {
  readonly view: View
  /** Asks the client, on the stream of one of the client's requests. */
  askOn: AskClient
  /** Sends a message that belongs to none of the client's requests. */
  send: (text: string) => void
}

/** A request of a legacy client, which is answered on a reply channel. */
export class LegacyExchange implements Exchange<View> {
  view: View
  readonly method: string
  readonly params: Record<string, unknown>
  readonly paramsText: string
  readonly client: AskableClient
  readonly canSuspend = false
  readonly #origin: HttpRequestContext
  readonly #idText: string
  readonly #reply: ReplyChannel
  readonly #onCancel: Array<(reason: string) => void> = []
  /** One controller for each question that is open on this request's stream. All abort when the request ends. */
  #questions: Set<AbortController> | undefined
  #over = false
  cancelled: string | undefined
  cancelParams: string | undefined

  constructor (client: AskableClient, request: Request, origin: HttpRequestContext, reply: ReplyChannel) {
    this.client = client
    this.view = client.view
    this.method = request.method
    this.params = request.params
    this.paramsText = request.paramsText
    this.#origin = origin
    this.#idText = request.idText
    this.#reply = reply
  }

  // The headers are copied only when they are used, since few servers receive them.
  get headers (): RequestHeaders {
    const { headers, credentialHeader } = this.#origin
    return credentialHeader === undefined ? headers : omitHeaders(headers, [credentialHeader])
  }

  get address (): string { return this.#origin.address }

  get taskForm (): TaskForm {
    return this.params.task !== undefined || this.method.startsWith('tasks/') ? 'parameter' : undefined
  }

  onCancel (run: (reason: string) => void): void {
    if (this.cancelled === undefined) this.#onCancel.push(run)
    else run(this.cancelled)
  }

  notify (method: string, paramsText: string): void {
    if (!this.#over && passesLogLevel(this.client.listener?.level, method, paramsText)) {
      this.#reply.send(notificationText(method, paramsText))
    }
  }

  async ask (question: Question): Promise<Response> {
    if (this.#over) throw new RpcError(rpcCode.internal, 'The request has ended', 'internal')
    if (!this.#reply.canStream) return await this.client.ask(question)
    if (question.outlivesRequest) {
      return await this.client
        .askOn((text) => { if (this.#over) this.client.send(text); else this.#reply.send(text) }, question)
    }
    const over = new AbortController()
    const questions = this.#questions ??= new Set()
    questions.add(over)
    try {
      const signal = AbortSignal.any([question.signal, over.signal])
      return await this.client.askOn((text) => { this.#reply.send(text) }, { ...question, signal })
    } finally {
      questions.delete(over)
    }
  }

  pause (retry: number): void { this.#reply.pause(retry) }

  succeed (result: string | Buffer): void {
    this.#finish(answerParts(`{"jsonrpc":"2.0","id":${this.#idText},"result":`, result))
  }

  fail (error: RpcError): void {
    this.#finish([errorResponseText(this.#idText, error.toText())])
  }

  /** Cancels the request: the client gets no answer. */
  cancel (reason: string, paramsText?: string): void {
    if (this.#over) return
    this.cancelled = reason
    this.cancelParams = paramsText
    this.#finish(undefined)
    for (const run of this.#onCancel) run(reason)
  }

  /** Cancels the request because the gateway ends it, and answers with the error. */
  end (error: RpcError): void {
    if (this.#over) return
    this.cancelled = error.message
    this.fail(error)
    for (const run of this.#onCancel) run(error.message)
  }

  #finish (parts: Array<string | Buffer> | undefined): void {
    if (this.#over) return
    if (this.#questions) for (const over of this.#questions) over.abort('the request has ended')
    this.#over = true
    this.#reply.finish(parts)
  }
}
