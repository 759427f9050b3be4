import { code, RpcError, UpstreamError } from '../../../protocol/errors.ts'
import type { Client } from '../../../protocol/exchange.ts'
import { limits } from '../../limits/index.ts'
import type { RequestRunner } from '../links/requests.ts'
import type { Placement } from '../links/placement.ts'

/** Which resources of one server its clients hear of. The first subscriber of a URI subscribes upstream, the last one unsubscribes. */
export class Subscriptions {
  readonly #name: string
  readonly #placement: Placement
  readonly #requests: RequestRunner

  /** @param name the server's */
  constructor (name: string, placement: Placement, requests: RequestRunner) {
    this.#name = name
    this.#placement = placement
    this.#requests = requests
  }

  has (client: Client, uri: string): boolean { return this.#placement.subscribedOn(client, uri) !== undefined }

  /** The URIs that a client is subscribed to. */
  of (client: Client): string[] {
    return this.#placement.pool.all.flatMap(({ subscriptions }) =>
      [...subscriptions].flatMap(([uri, subscribers]) => (subscribers.has(client.id) ? [uri] : []))
    )
  }

  /** @param params the client's own, as text @returns the text of the result @throws RpcError the upstream's, relayed; -32000 when the client has as many as there may be; -32001 when there is no answer */
  async add (client: Client, uri: string, params = JSON.stringify({ uri })): Promise<string> {
    const slot = this.#placement.slotFor(client, this.#placement.passed(client.headersOf?.('resources/subscribe')))
    if (!slot.link) await this.#requests.patiently(slot)
    if (slot.countOf(client.id) >= limits.subscriptionsPerSession) {
      throw new RpcError(
        code.badRequest,
        `This session has ${limits.subscriptionsPerSession} subscriptions with server ${JSON.stringify(this.#name)}, as many as there may be`
      )
    }
    const subscribers = slot.subscriptions.get(uri)
    if (subscribers) subscribers.set(client.id, client)
    else {
      slot.subscriptions.set(uri, new Map([[client.id, client]]))
      const subscribing = this.#requests
        .once(slot, async (link) => await link.request('resources/subscribe', params))
        .finally(() => {
          slot.subscribing.delete(uri)
        })
      slot.subscribing.set(uri, subscribing)
    }
    try {
      // Whoever comes while the upstream is being asked has its answer.
      return await slot.subscribing.get(uri) ?? '{}'
    } catch (error) {
      slot.subscriptions.delete(uri)
      throw error
    }
  }

  /** An upstream that cannot be reached has nothing to unsubscribe from. @param params the client's own, as text @returns the text of the result @throws RpcError the upstream's, relayed */
  async remove (client: Client, uri: string, params = JSON.stringify({ uri })): Promise<string> {
    const slot = this.#placement.subscribedOn(client, uri)
    const subscribers = slot?.subscriptions.get(uri)
    if (!slot || !subscribers?.delete(client.id) || subscribers.size > 0) return '{}'
    slot.subscriptions.delete(uri)
    try {
      return await slot.link?.request('resources/unsubscribe', params) ?? '{}'
    } catch (error) {
      if (!(error instanceof UpstreamError)) throw error
      return '{}'
    }
  }
}
