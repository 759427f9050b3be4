import type { Client, Exchange, Headers, Question } from './exchange.ts'
import type { Response } from './message.ts'

/** What a derived request has in place of the members of the one that it is derived from. */
interface Derivation<View> {
  readonly view: View
  readonly params: Record<string, unknown>
  /** `params` as JSON text, for relaying. */
  readonly paramsText: string
}

/**
 * Another request in place of one that a client sent. It is the same client's, is answered, cancelled, notified of and asked about in the
 * same way, under the client's progress token, and ends with it.
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
