import { rpcCode, RpcError, UpstreamError } from '../../../protocol/errors.ts'
import type { Client } from '../../../protocol/exchange.ts'
import { ShareError } from '../../base/limits/index.ts'
import type { Placement } from '../links/placement.ts'
import type { RequestRunner } from '../links/requests.ts'
import type { Slot } from '../links/slot.ts'
import { gatewayLimits } from '../../gateway/index.ts'

/**
 * The resource subscriptions of a server's clients. The first subscriber of a URI causes the upstream subscription, and
 * the last one ends it.
 */
export class ResourceSubscriptions {
  readonly #server: string
  readonly #placement: Placement
  readonly #requests: RequestRunner
  readonly #open: (slot: Slot) => void

  /** @param open opens a slot's link, and restores the state that the slot remembers */
  constructor (server: string, placement: Placement, requests: RequestRunner, open: (slot: Slot) => void) {
    this.#open = open
    this.#server = server
    this.#placement = placement
    this.#requests = requests
  }

  /** The URIs that a client is subscribed to. */
  of (client: Client): string[] {
    return this.#placement.pool.all.flatMap(({ subscriptions }) => subscriptions.urisOf(client.id))
  }

  /**
   * Subscribes a client.
   * @param paramsText the client's params, as JSON text
   * @returns the text of the result
   * @throws RpcError from the upstream; -32000 when the client has too many subscriptions; -32001 when its owner has
   *   too many, or the upstream does not answer
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
      // Clients that subscribe while the upstream's answer is pending share that answer.
      return await slot.subscribing.get(uri) ?? '{}'
    } catch (error) {
      slot.subscriptions.removeAll(uri)
      throw error
    }
  }

  /** Restores a client's subscription on its link, at once or when the link is open. @throws RpcError as `add` */
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
   * Unsubscribes a client. An unreachable upstream has nothing to unsubscribe from.
   * @param paramsText the client's params, as JSON text
   * @returns the text of the result
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

  /** @throws RpcError -32000 when the client has the max number of subscriptions */
  #checkCount ({ subscriptions }: Slot, { id }: Client): void {
    if (subscriptions.countOf(id) < gatewayLimits.subscriptionsPerSession) return
    const server = JSON.stringify(this.#server)
    const sentence = `This session has ${gatewayLimits.subscriptionsPerSession} subscriptions with server ${server}, ` +
      'the maximum'
    throw new RpcError(rpcCode.badRequest, sentence, 'limit')
  }
}

/**
 * Records a subscription.
 * @returns whether it is the first of its resource
 * @throws RpcError -32001 when the client's owner has too many
 */
function addToTable (slot: Slot, client: Client, uri: string): boolean {
  try {
    return slot.subscriptions.add(uri, client)
  } catch (error) {
    if (error instanceof ShareError) throw new RpcError(rpcCode.unavailable, error.message, 'limit')
    throw error
  }
}
