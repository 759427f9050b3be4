import { code, RpcError } from '../../protocol/errors.ts'
import type { Client, Exchange } from '../../protocol/exchange.ts'
import type { Level } from '../../protocol/listener.ts'
import type { Response } from '../../protocol/message.ts'
import type { View } from '../access/view.ts'

/** A caller that can be told and asked nothing: a plain HTTP request. */
export class PlainClient implements Client {
  readonly id: string
  readonly user: string
  readonly principal: string
  readonly alone: boolean
  readonly deaf = true
  readonly capabilities = {}
  level: Level | undefined

  /** @param alone it wants connections of its own */
  constructor (id: string, user: string, principal: string, alone: boolean) {
    this.id = id
    this.user = user
    this.principal = principal
    this.alone = alone
  }

  async ask (): Promise<Response> {
    throw new RpcError(code.internal, 'The caller is no MCP client and cannot be asked')
  }

  notify (): void {}
}

/** One request that did not come by MCP: a REST call. It has nobody behind it to ask, and no stream to tell anything on. */
export class DirectExchange implements Exchange<View> {
  readonly view: View
  readonly method: string
  readonly params: Record<string, unknown>
  readonly paramsText: string
  readonly headers: Exchange['headers']
  readonly client: Client
  readonly #onCancel: Array<(reason: string) => void> = []
  cancelled: string | undefined

  /** @param client the session that it belongs to; undefined: none */
  constructor (view: View, method: string, params: Record<string, unknown>, headers: Exchange['headers'], client?: Client) {
    this.view = view
    this.method = method
    this.params = params
    this.paramsText = JSON.stringify(params)
    this.headers = headers
    const { key, user } = view.principal
    this.client = client ?? new PlainClient(`rest ${key}`, user, key, false)
  }

  onCancel (run: (reason: string) => void): void {
    this.#onCancel.push(run)
  }

  notify (): void {}
  async ask (): Promise<Response> {
    return await this.client.ask({
      method: '',
      params: {},
      paramsText: '{}',
      signal: AbortSignal.abort(),
      outlives: false,
      progress: () => {}
    })
  }

  pause (): void {}

  /** The caller is gone. */
  cancel (reason: string): void {
    this.cancelled = reason
    for (const run of this.#onCancel) run(reason)
  }
}
