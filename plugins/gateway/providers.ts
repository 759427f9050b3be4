import { addTo } from '../../protocol/grouping.ts'
import { capabilityClassOf } from '../../protocol/capabilities.ts'
import { rpcCode, RpcError } from '../../protocol/errors.ts'
import type { Client } from '../../protocol/exchange.ts'
import type { Provider, ProviderHost, ProviderSource } from '../../protocol/provider.ts'
import { waitAtMost } from '../../protocol/wait-at-most.ts'

/** All providers by name, and the providers that each client has used. */
export class ProviderTable {
  readonly #sources: ProviderSource[] = []
  readonly #registered = new Map<string, Provider>()
  /** By client id: names of providers, since references would keep replaced providers in memory. */
  readonly #usedProviders = new Map<string, Set<string>>()
  readonly #releasing = new Set<Promise<unknown>>()
  #generation = 0

  /** Incremented with every change of any provider's lists. */
  get generation (): number { return this.#generation }

  /** Records that a provider's lists have changed. */
  recordListChange (): void { this.#generation++ }

  addSource (source: ProviderSource, host: ProviderHost): void {
    this.#sources.push(source)
    source.connect(host)
  }

  add (provider: Provider): void {
    this.#registered.set(provider.name, provider)
    this.#generation++
  }

  /** Whether a provider belongs to the gateway itself, and not to the settings. */
  isRegistered (name: string): boolean { return this.#registered.has(name) }

  /** The registered provider with whose `uriPrefix` a URI begins; undefined if there is none. */
  ownerOf (uri: string): Provider | undefined {
    for (const provider of this.#registered.values()) {
      if (provider.uriPrefix !== undefined && uri.startsWith(provider.uriPrefix)) return provider
    }
    return undefined
  }

  get (name: string): Provider | undefined {
    const registered = this.#registered.get(name)
    if (registered) return registered
    for (const source of this.#sources) {
      const provider = source.get(name)
      if (provider) return provider
    }
    return undefined
  }

  /** A key that is equal for clients to whom, within one generation, each provider lists the same items. */
  catalogueKey (client: Client): string {
    let key = capabilityClassOf(client.capabilities)
    for (const source of this.#sources) {
      const own = source.catalogueKey?.(client)
      if (own !== undefined && own !== '') key = `${own} ${key}`
    }
    return key
  }

  /** Returns a provider for a client, and records the use for `release`. @throws RpcError -32001 if there is none */
  use (name: string, client: Client): Provider {
    const provider = this.get(name)
    if (!provider) {
      throw new RpcError(rpcCode.unavailable, `Server ${JSON.stringify(name)} is not connected`, 'not-connected')
    }
    this.#recordUse(name, client)
    return provider
  }

  usedBy (client: Client): Provider[] {
    return [...this.#usedProviders.get(client.id) ?? []].flatMap((name) => this.get(name) ?? [])
  }

  /**
   * Releases a client, which has disconnected or lost access, at the providers that it has used.
   * @param from the names of the providers; default: all
   */
  async release (client: Client, from?: ReadonlySet<string>): Promise<void> {
    const used = this.#usedProviders.get(client.id)
    if (!used) return
    const leaving = [...used].filter((name) => from?.has(name) !== false)
    for (const name of leaving) used.delete(name)
    if (used.size === 0) this.#usedProviders.delete(client.id)
    const releasing = Promise.all(leaving.map(async (name) => { await this.get(name)?.release?.(client) }))
      .finally(() => { this.#releasing.delete(releasing) })
    this.#releasing.add(releasing)
    await releasing
  }

  /** Resolves when the releases in progress have ended. */
  async waitForReleases (): Promise<void> {
    await Promise.allSettled(this.#releasing)
  }

  /**
   * Waits for the catalogues of these providers for this client, for at most the longest `maxWait` of their reads.
   * @param only whether the request is for a single provider, which is awaited even while it connects
   */
  async waitForLists (names: Iterable<string>, client: Client, only: boolean): Promise<void> {
    const waits: Array<Promise<unknown>> = []
    let budget = 0
    for (const name of names) {
      for (const loading of this.get(name)?.loadLists?.(client, only) ?? []) {
        waits.push(loading.done)
        budget = Math.max(budget, loading.maxWait)
        this.#recordUse(name, client)
      }
    }
    if (waits.length === 0) return
    await waitAtMost(budget, Promise.all(waits))
  }

  /** Calls the provider's `loadListsForItem`, and records the use. */
  loadListsForItem (name: string, client: Client): Promise<void> | undefined {
    const reading = this.get(name)?.loadListsForItem?.(client)
    if (reading) this.#recordUse(name, client)
    return reading
  }

  #recordUse (name: string, client: Client): void {
    // A client with neither a listener nor own links has nothing to release.
    if (client.listener === undefined && client.hasOwnLinks !== true) return
    addTo(this.#usedProviders, client.id, name)
  }
}
