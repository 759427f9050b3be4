import { NonMcpClient, type Client, type Exchange, type Question } from '../../protocol/exchange.ts'
import type { Response } from '../../protocol/message.ts'

/** A request of a client, as `tools/call` is: notes what it is told, and answers questions as the test says. */
export class FakeExchange implements Exchange {
  readonly view = undefined
  readonly method = 'tools/call'
  readonly params: Record<string, unknown>
  readonly paramsText: string
  readonly headers = {}
  readonly address = undefined
  readonly canSuspend = false
  readonly client: Client
  cancelled: string | undefined
  readonly paused: number[] = []
  /** What was sent with it: method and params. */
  readonly notified: Array<[string, string]> = []
  readonly asked: Question[] = []
  /** Answers a question. */
  answer: (question: Question) => Promise<Response> = async () => { throw new Error('not asked') }
  readonly #runs: Array<(reason: string) => void> = []

  /** @param paramsText as JSON */
  constructor (paramsText = '{"name":"x"}', client: Client = new NonMcpClient('s', 'u')) {
    this.params = JSON.parse(paramsText) as Record<string, unknown>
    this.paramsText = paramsText
    this.client = client
  }

  onCancel (run: (reason: string) => void): void { this.#runs.push(run) }
  notify (method: string, paramsText: string): void { this.notified.push([method, paramsText]) }
  async ask (question: Question): Promise<Response> { this.asked.push(question); return await this.answer(question) }
  pause (retry: number): void { this.paused.push(retry) }
  cancel (reason: string): void { this.cancelled = reason; for (const run of this.#runs) run(reason) }
}
