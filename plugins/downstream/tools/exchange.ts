import { NonMcpClient, UnattendedExchange, type Client, type RequestHeaders } from '../../../protocol/exchange.ts'
import { chargedOwnerOf, type View } from '../../settings/index.ts'

/** A request of a plain HTTP caller, to whom neither questions nor notifications can be sent. */
export class PlainHttpExchange extends UnattendedExchange<View> {
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
    paramsText?: string
  ) {
    super({ view, client, method, params, paramsText, headers, address })
  }
}

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
