import { code, RpcError, UpstreamError } from '../../protocol/errors.ts'
import type { Asker } from '../../protocol/exchange.ts'
import { limits } from '../limits/index.ts'
import type { Asking } from './asking.ts'
import type { Places } from './places.ts'

/** Which resources of one server its clients hear of. The first subscriber of a URI subscribes upstream, the last one unsubscribes. */
export class Subscriptions {
  readonly #name: string
  readonly #places: Places
  readonly #asking: Asking

  /** @param name the server's */
  constructor (name: string, places: Places, asking: Asking) {
    this.#name = name
    this.#places = places
    this.#asking = asking
  }

  has (asker: Asker, uri: string): boolean { return this.#places.subscribedOn(asker, uri) !== undefined }

  /** The URIs that a client is subscribed to. */
  of (asker: Asker): string[] {
    return this.#places.pool.all.flatMap(({ subscriptions }) => [...subscriptions].flatMap(([uri, subscribers]) => subscribers.has(asker.id) ? [uri] : []))
  }

  /** @param params the client's own, as text @returns the text of the result @throws RpcError the upstream's, relayed; -32000 when the client has as many as there may be; -32001 when there is no answer */
  async add (asker: Asker, uri: string, params = JSON.stringify({ uri })): Promise<string> {
    const slot = this.#places.slotFor(asker, this.#places.passed(asker.headersOf?.('resources/subscribe')))
    if (!slot.link) await this.#asking.patiently(slot)
    if (slot.countOf(asker.id) >= limits.subscriptionsPerSession) throw new RpcError(code.badRequest, `This session has ${limits.subscriptionsPerSession} subscriptions with server ${JSON.stringify(this.#name)}, as many as there may be`)
    const subscribers = slot.subscriptions.get(uri)
    if (subscribers) subscribers.set(asker.id, asker)
    else {
      slot.subscriptions.set(uri, new Map([[asker.id, asker]]))
      const subscribing = this.#asking.once(slot, async (link) => await link.request('resources/subscribe', params)).finally(() => { slot.subscribing.delete(uri) })
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
  async remove (asker: Asker, uri: string, params = JSON.stringify({ uri })): Promise<string> {
    const slot = this.#places.subscribedOn(asker, uri)
    const subscribers = slot?.subscriptions.get(uri)
    if (!slot || !subscribers?.delete(asker.id) || subscribers.size > 0) return '{}'
    slot.subscriptions.delete(uri)
    try {
      return await slot.link?.request('resources/unsubscribe', params) ?? '{}'
    } catch (error) {
      if (!(error instanceof UpstreamError)) throw error
      return '{}'
    }
  }
}
