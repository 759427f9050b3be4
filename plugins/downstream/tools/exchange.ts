import { NonMcpClient, type Client, type Exchange, type RequestHeaders } from '../../../protocol/exchange.ts'
import type { Response } from '../../../protocol/message.ts'
import { chargedOwnerOf, type View } from '../../settings/index.ts'

/** A request of a plain HTTP caller, to whom neither questions nor notifications can be sent. */
export class PlainHttpExchange implements Exchange<View> {
  view: View
  readonly method: string
  readonly params: Record<string, unknown>
  readonly paramsText: string
  readonly headers: RequestHeaders
  readonly address: string
  readonly client: Client
  readonly canSuspend = false
  readonly #onCancel: Array<(reason: string) => void> = []
  cancelled: string | undefined

  /**
   * @param client the client that stands for the caller's session; by default, one without a session
   * @param paramsText the JSON text of `params`, if it is already known
   */
  constructor (
    view: View,
    method: string,
    params: Record<string, unknown>,
    { headers, address }: { headers: RequestHeaders, address: string },
    client: Client = createSessionlessClient(view, address),
    paramsText = JSON.stringify(params)
  ) {
    this.view = view
    this.method = method
    this.params = params
    this.paramsText = paramsText
    this.headers = headers
    this.address = address
    this.client = client
  }

  onCancel (run: (reason: string) => void): void {
    if (this.cancelled === undefined) this.#onCancel.push(run)
    else run(this.cancelled)
  }

  notify (): void {}
  async ask (): Promise<Response> { return await plainClient.ask() }
  pause (): void {}

  /** Cancels the request, for example because the caller has disconnected. */
  cancel (reason: string): void {
    if (this.cancelled !== undefined) return
    this.cancelled = reason
    for (const run of this.#onCancel) run(reason)
  }
}

const plainClient = new NonMcpClient('', '')

/**
 * Returns a client that stands for a plain HTTP caller without a session.
 * @param address the IP address of the caller, to which resources are charged if the caller has no credential
 */
export const createSessionlessClient = ({ principal }: View, address = ''): Client =>
  new NonMcpClient(`rest ${principal.key}`, principal.user, principal.key, false, chargedOwnerOf(principal, address))

/** Signals that a caller has disconnected before the answer. Creating it costs less than an AbortSignal. */
export class DisconnectSignal {
  #hasHappened = false
  #listener: (() => void) | undefined

  /** Calls `run` when the caller disconnects, or at once if it already has. Replaces the `run` of an earlier call. */
  listen (run: () => void): void {
    this.#listener = run
    if (this.#hasHappened) run()
  }

  trigger (): void {
    if (this.#hasHappened) return
    this.#hasHappened = true
    this.#listener?.()
  }
}
