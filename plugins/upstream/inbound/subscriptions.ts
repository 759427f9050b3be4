import { code, RpcError, UpstreamError } from '../../../protocol/errors.ts'
import type { Client } from '../../../protocol/exchange.ts'
import { limits } from '../../limits/index.ts'
import { ShareError } from '../../limits/shares.ts'
import type { Placement } from '../links/placement.ts'
import type { RequestRunner } from '../links/requests.ts'
import type { Slot } from '../links/slot.ts'

/** The resource subscriptions of one server's clients. The first subscriber of a URI subscribes upstream, the last one unsubscribes. */
export class Subscriptions {
  readonly #server: string
  readonly #placement: Placement
  readonly #requests: RequestRunner

  /** @param server its name */
  constructor (server: string, placement: Placement, requests: RequestRunner) {
    this.#server = server
    this.#placement = placement
    this.#requests = requests
  }

  /** The URIs that a client is subscribed to. */
  of (client: Client): string[] {
    return this.#placement.pool.all.flatMap(({ subscriptions }) => subscriptions.urisOf(client.id))
  }

  /**
   * @param paramsText the client's own, as JSON text
   * @returns the text of the result
   * @throws RpcError the upstream's, relayed; -32000 when the client has too many; -32001 when its owner has, or there is no answer
   */
  async add (client: Client, uri: string, paramsText?: string): Promise<string> {
    const slot = this.#placement.slotFor(client, this.#placement.passed(client.headersOf?.('resources/subscribe')))
    if (!slot.link) await this.#requests.link(slot)
    if (slot.subscriptions.countOf(client.id) >= limits.subscriptionsPerSession) {
      const server = JSON.stringify(this.#server)
      const sentence = `This session has ${limits.subscriptionsPerSession} subscriptions with server ${server}, as many as there may be`
      throw new RpcError(code.badRequest, sentence, 'limit')
    }
    const isFirst = noted(slot, client, uri)
    slot.link?.noteUser(client)
    if (isFirst) {
      const subscribing = this.#requests.run(slot, async (link) => await link.subscribe(uri, paramsText))
        .finally(() => { slot.subscribing.delete(uri) })
      slot.subscribing.set(uri, subscribing)
    }
    try {
      // Clients that subscribe while the upstream is being asked share its answer.
      return await slot.subscribing.get(uri) ?? '{}'
    } catch (error) {
      slot.subscriptions.removeAll(uri)
      throw error
    }
  }

  /**
   * An upstream that cannot be reached has nothing to unsubscribe from.
   * @param paramsText the client's own, as JSON text
   * @returns the text of the result
   * @throws RpcError the upstream's, relayed
   */
  async remove (client: Client, uri: string, paramsText?: string): Promise<string> {
    const slot = this.#placement.subscribedOn(client, uri)
    if (!slot?.subscriptions.remove(uri, client.id)) return '{}'
    try {
      return await slot.link?.unsubscribe(uri, paramsText) ?? '{}'
    } catch (error) {
      if (!(error instanceof UpstreamError)) throw error
      return '{}'
    }
  }
}

/** Notes a subscription. @returns whether it is the first one of this resource @throws RpcError -32001 when its owner has too many */
function noted (slot: Slot, client: Client, uri: string): boolean {
  try {
    return slot.subscriptions.add(uri, client)
  } catch (error) {
    if (error instanceof ShareError) throw new RpcError(code.unavailable, error.message, 'limit')
    throw error
  }
}
