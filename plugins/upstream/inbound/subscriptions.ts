import { rpcCode, RpcError, UpstreamError } from '../../../protocol/errors.ts'
import type { Client } from '../../../protocol/exchange.ts'
import { ShareError } from '../../base/limits/index.ts'
import type { Placement } from '../links/placement.ts'
import type { RequestRunner } from '../links/requests.ts'
import type { Slot } from '../links/slot.ts'
import { gatewayLimits } from '../../gateway/index.ts'

/**
 * The resource subscriptions of one server's clients. On each link, the first subscriber of a URI causes a subscription
 * at the upstream, and the last one ends it.
 */
export class ResourceSubscriptions {
  readonly #server: string
  readonly #placement: Placement
  readonly #requests: RequestRunner
  readonly #open: (slot: Slot) => void

  /** @param open opens a slot's link, and restores the slot's subscriptions on it */
  constructor (server: string, placement: Placement, requests: RequestRunner, open: (slot: Slot) => void) {
    this.#open = open
    this.#server = server
    this.#placement = placement
    this.#requests = requests
  }

  /** Returns the URIs of the resources to which a client is subscribed. */
  of (client: Client): string[] {
    return this.#placement.pool.all.flatMap(({ subscriptions }) => subscriptions.urisOf(client.id))
  }

  /**
   * Subscribes a client to a resource.
   * @param paramsText the params of the client's request, as JSON text
   * @returns the result, as JSON text
   * @throws RpcError from the upstream; -32000 if the client has too many subscriptions; -32001 if the subscriptions of
   *   its owner use too much memory, or the upstream does not answer
   */
  async add (client: Client, uri: string, paramsText?: string): Promise<string> {
    const slot = this.#placement.slotFor(
      client, this.#placement.passedHeadersOf(client.headersOf?.('resources/subscribe'))
    )
    if (!slot.link) await this.#requests.waitForLink(slot)
    this.#checkCount(slot, client)
    const isFirst = addToTable(slot, client, uri)
    slot.link?.recordUser(client)
    if (isFirst) {
      const subscribing = this.#requests.run(slot, async (link) => await link.subscribe(uri, paramsText))
        .finally(() => { slot.subscribing.delete(uri) })
      slot.subscribing.set(uri, subscribing)
    }
    try {
      // Clients that subscribe while the upstream's response is pending share that response.
      return await slot.subscribing.get(uri) ?? '{}'
    } catch (error) {
      slot.subscriptions.removeAll(uri)
      throw error
    }
  }

  /**
   * Restores a client's subscription. If the link is not open, begins to open it: a new link restores all
   * subscriptions.
   * @throws RpcError -32000, -32001 as in `add`
   */
  restore (client: Client, uri: string): void {
    const slot = this.#placement.slotFor(
      client, this.#placement.passedHeadersOf(client.headersOf?.('resources/subscribe'))
    )
    this.#checkCount(slot, client)
    const isFirst = addToTable(slot, client, uri)
    slot.link?.recordUser(client)
    if (slot.link === undefined) this.#open(slot)
    else if (isFirst) slot.link.subscribe(uri).catch(() => {})
  }

  /**
   * Unsubscribes a client from a resource; after the last subscriber, also ends the subscription at the upstream. An
   * unreachable upstream is no error, since the subscription has ended with the connection.
   * @param paramsText the params of the client's request, as JSON text
   * @returns the result, as JSON text
   * @throws RpcError from the upstream
   */
  async remove (client: Client, uri: string, paramsText?: string): Promise<string> {
    const slot = this.#placement.findSubscribedSlot(client, uri)
    if (!slot?.subscriptions.remove(uri, client.id)) return '{}'
    try {
      return await slot.link?.unsubscribe(uri, paramsText) ?? '{}'
    } catch (error) {
      if (!(error instanceof UpstreamError)) throw error
      return '{}'
    }
  }

  /** @throws RpcError -32000 if the client has the max number of subscriptions on this slot */
  #checkCount ({ subscriptions }: Slot, { id }: Client): void {
    if (subscriptions.countOf(id) < gatewayLimits.subscriptionsPerSession) return
    const server = JSON.stringify(this.#server)
    const sentence = `This session has ${gatewayLimits.subscriptionsPerSession} subscriptions with server ${server}, ` +
      'the maximum'
    throw new RpcError(rpcCode.badRequest, sentence, 'limit')
  }
}

/**
 * Records a subscription on a slot.
 * @returns whether it is the first one for the resource
 * @throws RpcError -32001 if the subscriptions of the client's owner use too much memory
 */
function addToTable (slot: Slot, client: Client, uri: string): boolean {
  try {
    return slot.subscriptions.add(uri, client)
  } catch (error) {
    if (error instanceof ShareError) throw new RpcError(rpcCode.unavailable, error.message, 'limit')
    throw error
  }
}
