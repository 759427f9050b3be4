import type { Client } from '../../../protocol/exchange.ts'
import { memoryOf } from '../../../protocol/text.ts'
import { limits, type Release, Shares } from '../../base/limits/index.ts'

const { size, cost, levels } = limits.subscriptions

/** The memory of all subscriptions of this process, in bytes. */
const held = new Shares(size, 'subscriptions to resources')

/** The subscriptions of one client, by URI. */
interface Subscriber { readonly client: Client, readonly releases: Map<string, Release> }

/** Who is subscribed to which resource on one link. All look-ups are independent of how many subscriptions there are. */
export class SubscriptionTable {
  readonly #byUri = new Map<string, Map<string, Client>>()
  readonly #byClient = new Map<string, Subscriber>()

  /** How many resources somebody is subscribed to. */
  get size (): number { return this.#byUri.size }
  get uris (): Iterable<string> { return this.#byUri.keys() }
  get clients (): Client[] { return [...this.#byClient.values()].map(({ client }) => client) }

  has (uri: string, id?: string): boolean { return id === undefined ? this.#byUri.has(uri) : this.#byUri.get(uri)?.has(id) === true }

  /** The clients that are subscribed to exactly this resource. */
  of (uri: string): Client[] { return [...this.#byUri.get(uri)?.values() ?? []] }

  /** The URIs that a client is subscribed to. */
  urisOf (id: string): string[] { return [...this.#byClient.get(id)?.releases.keys() ?? []] }

  /** How many subscriptions a client has. */
  countOf (id: string): number { return this.#byClient.get(id)?.releases.size ?? 0 }

  /**
   * Adds a subscription, unless it is there.
   * @param release gives back the memory that was taken for it elsewhere; left out: it is taken in the name of the client's owner
   * @returns whether it is the first one of this resource
   * @throws ShareError
   */
  add (uri: string, client: Client, release?: Release): boolean {
    if (this.has(uri, client.id)) { release?.(); return false }
    const taken = release ?? held.take(client.owner ?? client.id, memoryOf(uri) + cost)
    const subscriber = this.#byClient.get(client.id)
    if (subscriber) subscriber.releases.set(uri, taken)
    else this.#byClient.set(client.id, { client, releases: new Map([[uri, taken]]) })
    const subscribers = this.#byUri.get(uri)
    if (subscribers) subscribers.set(client.id, client)
    else this.#byUri.set(uri, new Map([[client.id, client]]))
    return subscribers === undefined
  }

  /** Removes a subscription. @returns whether nobody is subscribed to the resource any more; false as well where there was none */
  remove (uri: string, id: string): boolean {
    this.#release(uri, id)
    const subscribers = this.#byUri.get(uri)
    if (!subscribers?.delete(id) || subscribers.size > 0) return false
    return this.#byUri.delete(uri)
  }

  /** Removes all subscriptions to a resource. */
  removeAll (uri: string): void { for (const { id } of this.of(uri)) this.remove(uri, id) }

  /** Removes all subscriptions of a client. @returns the URIs that nobody is subscribed to any more */
  forget (id: string): string[] { return this.urisOf(id).filter((uri) => this.remove(uri, id)) }

  /**
   * Copies a client's subscriptions from another table, which ends or forgets the client next. Their memory is counted here from now on.
   * @returns the URIs to which nobody was subscribed here
   */
  takeOver (from: SubscriptionTable, client: Client): string[] {
    return from.urisOf(client.id).filter((uri) => this.add(uri, client, from.#handOver(uri, client.id)))
  }

  clear (): void { for (const id of [...this.#byClient.keys()]) this.forget(id) }

  /**
   * The clients that are subscribed to a resource, or to one that it is a part of: `r://1/a` is a part of `r://1`, `r://10` is not. Of a
   * URI of more than `limits.subscriptions.levels` levels, the first of them count.
   */
  * subscribersOf (uri: string): Iterable<Client> {
    yield * this.of(uri)
    let left: number = levels
    for (const { index } of uri.matchAll(/[/?#]/g)) {
      if (left-- === 0) return
      if (index > 0) yield * this.of(uri.slice(0, index))
      if (index + 1 < uri.length) yield * this.of(uri.slice(0, index + 1))
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
