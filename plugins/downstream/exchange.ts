import { code, RpcError } from '../../protocol/errors.ts'
import type { Exchange, Question } from '../../protocol/exchange.ts'
import { errorText, notificationText, type Request, type Response } from '../../protocol/message.ts'
import type { View } from '../access/view.ts'
import { withoutHeaders } from '../upstream/links/passthrough.ts'
import type { EventStream } from './event-stream.ts'
import type { HttpReply } from './http-reply.ts'
import type { Session } from './legacy/session.ts'
import type { Stream } from './legacy/stream.ts'

/** One request of a legacy client over streamable HTTP. */
export class HttpExchange implements Exchange<View> {
  readonly view: View
  readonly method: string
  readonly params: Record<string, unknown>
  readonly paramsText: string
  readonly client: Session
  readonly #headers: Exchange['headers']
  readonly #credential: string | undefined
  readonly #idText: string
  readonly #reply: HttpReply
  readonly #onCancel: Array<(reason: string) => void> = []
  readonly #asking = new Set<AbortController>()
  #over = false
  cancelled: string | undefined

  /** @param credential the header, in lower case, that told who is asking */
  constructor (session: Session, request: Request, headers: Exchange['headers'], credential: string | undefined, reply: HttpReply) {
    this.client = session
    this.view = session.view
    this.method = request.method
    this.params = request.params
    this.paramsText = request.paramsText
    this.#headers = headers
    this.#credential = credential
    this.#idText = request.idText
    this.#reply = reply
  }

  // Few servers are passed any on: nothing is copied before it is asked for.
  get headers (): Exchange['headers'] {
    return this.#credential === undefined ? this.#headers : withoutHeaders(this.#headers, [this.#credential])
  }

  onCancel (run: (reason: string) => void): void {
    this.#onCancel.push(run)
  }

  notify (method: string, paramsText: string): void {
    if (!this.#over && this.client.hears(method, paramsText)) this.#reply.say(notificationText(method, paramsText))
  }

  async ask (question: Question): Promise<Response> {
    if (this.#over) throw new RpcError(code.internal, 'The request is over')
    if (!this.#reply.canStream) return await this.client.ask(question)
    if (question.outlives) {
      return await this.client.askOn((text) => {
        if (this.#over) this.client.send(text)
        else this.#reply.say(text)
      }, question)
    }
    const over = new AbortController()
    this.#asking.add(over)
    try {
      return await this.client.askOn(
        (text) => {
          this.#reply.say(text)
        },
        { ...question, signal: AbortSignal.any([question.signal, over.signal]) }
      )
    } finally {
      this.#asking.delete(over)
    }
  }

  pause (retry: number): void {
    this.#reply.pause(retry)
  }

  carriedBy (stream: Stream): boolean {
    return this.#reply.isOn(stream)
  }

  resumed (connection: EventStream): void {
    this.#reply.resumed(connection)
  }

  succeed (result: string | Buffer): void {
    this.#finish(
      typeof result === 'string'
        ? [`{"jsonrpc":"2.0","id":${this.#idText},"result":${result}}`]
        : [`{"jsonrpc":"2.0","id":${this.#idText},"result":`, result, '}']
    )
  }

  fail (error: RpcError): void {
    this.#finish([errorText(this.#idText, error.toText())])
  }

  /** The client does not want the answer any more, and gets none. */
  cancel (reason: string): void {
    if (this.#over) return
    this.cancelled = reason
    this.#finish(undefined)
    for (const run of this.#onCancel) run(reason)
  }

  #finish (parts: Array<string | Buffer> | undefined): void {
    if (this.#over) return
    // What was asked for it is asked no more.
    for (const over of this.#asking) over.abort('the request is over')
    this.#over = true
    this.#reply.final(parts)
  }
}
