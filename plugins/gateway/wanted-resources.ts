import { rpcCode, RpcError } from '../../protocol/errors.ts'
import type { Client } from '../../protocol/exchange.ts'
import { memoryOf } from '../../protocol/text.ts'
import { type Release, ShareError, Shares } from '../base/limits/index.ts'
import { gatewayLimits } from './limits.ts'

const { size, cost } = gatewayLimits.subscriptions

/** The memory of the subscriptions of all clients, in bytes. */
const wantedMemory = new Shares(size, 'subscriptions to resources')

/**
 * The resources to which one client has subscribed. While the client's view does not show a resource, there is no
 * subscription at a provider; the subscription is renewed when the view shows the resource again.
 */
export class SubscribedResources {
  readonly #releases = new Map<string, Release>()
  /** Whether one of the resources has no subscription at a provider now. */
  isMissing = false

  get size (): number { return this.#releases.size }
  get uris (): Iterable<string> { return this.#releases.keys() }

  /** Adds a resource. @returns false if it was present @throws RpcError -32001 beyond `subscriptions.size` */
  add (client: Client, uri: string): boolean {
    if (this.#releases.has(uri)) return false
    try {
      this.#releases.set(uri, wantedMemory.take(client.owner ?? client.id, memoryOf(uri) + cost))
      return true
    } catch (error) {
      if (error instanceof ShareError) throw new RpcError(rpcCode.unavailable, error.message, 'limit')
      throw error
    }
  }

  /** Removes a resource. @returns whether it was present */
  remove (uri: string): boolean {
    this.#releases.get(uri)?.()
    return this.#releases.delete(uri)
  }

  clear (): void { for (const uri of [...this.#releases.keys()]) this.remove(uri) }
}
