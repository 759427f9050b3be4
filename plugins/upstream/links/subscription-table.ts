import type { Client } from '../../../protocol/exchange.ts'
import { memoryOf } from '../../../protocol/text.ts'
import { type Release, Shares } from '../../base/limits/index.ts'
import { gatewayLimits } from '../../gateway/index.ts'

const { size, cost, levels } = gatewayLimits.subscriptions

/** Limits the memory of all resource subscriptions in this process, in bytes. */
const subscriptionMemory = new Shares(size, 'subscriptions to resources')

interface ResourceSubscriber { readonly client: Client, readonly releases: Map<string, Release> }

/** The clients that are subscribed to each resource on one link. Look-ups take the same time for any number of them. */
export class SubscriptionTable {
  readonly #byUri = new Map<string, Map<string, Client>>()
  readonly #byClient = new Map<string, ResourceSubscriber>()

  get size (): number { return this.#byUri.size }
  get uris (): Iterable<string> { return this.#byUri.keys() }
  get clients (): Client[] { return [...this.#byClient.values()].map(({ client }) => client) }

  /** Whether a client is subscribed to a resource. @param id the client's id */
  has (uri: string, id: string): boolean { return this.#byUri.get(uri)?.has(id) === true }

  /** The clients that are subscribed to a resource under exactly this URI. */
  exactSubscribersOf (uri: string): Client[] { return [...this.#byUri.get(uri)?.values() ?? []] }

  urisOf (id: string): string[] { return [...this.#byClient.get(id)?.releases.keys() ?? []] }

  countOf (id: string): number { return this.#byClient.get(id)?.releases.size ?? 0 }

  /**
   * Adds a subscription, unless it exists.
   * @param release releases the memory that was already reserved for it; undefined to reserve memory now
   * @returns whether it is the first one for this resource
   * @throws ShareError if the client's owner has used up its share of the memory, or all of it is in use
   */
  add (uri: string, client: Client, release?: Release): boolean {
    if (this.has(uri, client.id)) { release?.(); return false }
    const taken = release ?? subscriptionMemory.take(client.owner ?? client.id, memoryOf(uri) + cost)
    const subscriber = this.#byClient.get(client.id)
    if (subscriber) subscriber.releases.set(uri, taken)
    else this.#byClient.set(client.id, { client, releases: new Map([[uri, taken]]) })
    const subscribers = this.#byUri.get(uri)
    if (subscribers) subscribers.set(client.id, client)
    else this.#byUri.set(uri, new Map([[client.id, client]]))
    return subscribers === undefined
  }

  /** Removes a subscription. @returns whether it was the last one for the resource */
  remove (uri: string, id: string): boolean {
    this.#release(uri, id)
    const subscribers = this.#byUri.get(uri)
    if (!subscribers?.delete(id) || subscribers.size > 0) return false
    return this.#byUri.delete(uri)
  }

  removeAll (uri: string): void { for (const { id } of this.exactSubscribersOf(uri)) this.remove(uri, id) }

  /** Removes all subscriptions of a client. @returns the URIs without remaining subscribers */
  removeClient (id: string): string[] { return this.urisOf(id).filter((uri) => this.remove(uri, id)) }

  /**
   * Copies a client's subscriptions from another table, and takes over the memory reserved for them. The caller must
   * then remove the client from the other table, or discard that table.
   * @returns the URIs that had no subscriber in this table before
   */
  takeOver (from: SubscriptionTable, client: Client): string[] {
    return from.urisOf(client.id).filter((uri) => this.add(uri, client, from.#handOver(uri, client.id)))
  }

  clear (): void { for (const id of [...this.#byClient.keys()]) this.removeClient(id) }

  /**
   * Finds the clients that are subscribed to a resource, or to one that contains it: `r://1` contains `r://1/a`, but
   * not `r://10`. Only the first `gatewayLimits.subscriptions.levels` levels of the URI are compared. A client with
   * several matching subscriptions is returned once.
   */
  * subscribersOf (uri: string): Iterable<Client> {
    const found = new Set<string>()
    for (const each of containingUrisOf(uri)) {
      for (const client of this.exactSubscribersOf(each)) {
        if (found.has(client.id)) continue
        found.add(client.id)
        yield client
      }
    }
  }

  #handOver (uri: string, id: string): Release | undefined {
    const releases = this.#byClient.get(id)?.releases
    const release = releases?.get(uri)
    releases?.set(uri, () => {})
    return release
  }

  #release (uri: string, id: string): void {
    const releases = this.#byClient.get(id)?.releases
    releases?.get(uri)?.()
    releases?.delete(uri)
    if (releases?.size === 0) this.#byClient.delete(id)
  }
}

/** Returns a URI itself, and the URIs of the resources that contain it, with and without a delimiter at the end. */
function * containingUrisOf (uri: string): Iterable<string> {
  yield uri
  let left: number = levels
  for (const { index } of uri.matchAll(/[/?#]/g)) {
    if (left-- === 0) return
    if (index > 0) yield uri.slice(0, index)
    if (index + 1 < uri.length) yield uri.slice(0, index + 1)
  }
}
