import { RpcError } from '../../protocol/errors.ts'
import type { Client, Exchange } from '../../protocol/exchange.ts'
import { parseSmallMember } from '../../protocol/json.ts'
import { hasExtension } from '../../protocol/capabilities.ts'
import { allListKinds, listExtensionOf, listChangedMethod, type ListKind } from '../../protocol/lists.ts'
import { meetsLogLevel, type Listener } from '../../protocol/listener.ts'
import { LoopBudget } from '../../protocol/yield.ts'
import type { View } from '../settings/index.ts'
import type { ListResult } from './list.ts'
import type { ProviderTable } from './providers.ts'
import type { ItemResolver } from './resolve.ts'
import type { Surfaces } from './surfaces.ts'
import { SubscribedResources } from './wanted-resources.ts'
import { gatewayLimits } from './limits.ts'

/** Time from a change to the notification of listeners, in ms. Further changes in this time are notified together. */
const collectTime = 50

/** A listener's client, the lists that it last received, and the resources that it subscribes to. */
interface ListenerEntry {
  readonly client: Client
  /**
   * Weak references, so that a session keeps no list in memory. A list that was garbage-collected counts as changed.
   * The client is not notified of kinds without an entry.
   */
  readonly seen: Partial<Record<ListKind, WeakRef<ListResult>>>
  readonly wanted: SubscribedResources
  /** The IP address of the client's last list or subscription request, by which hooks may hide items, if known. */
  address: string | undefined
}

const none: ReadonlySet<string> = new Set()

/**
 * Sends clients the notifications that belong to no request: changed lists, and providers' messages. When settings
 * change, ends what clients may no longer use.
 */
export class Notifier {
  readonly #providers: ProviderTable
  readonly #surfaces: Surfaces
  readonly #resolver: ItemResolver
  readonly #logError: (error: unknown, sentence: string) => void
  readonly #entries = new Map<Listener<View>, ListenerEntry>()
  #pending: NodeJS.Timeout | undefined
  #notifying = false

  constructor (
    providers: ProviderTable,
    surfaces: Surfaces,
    resolver: ItemResolver,
    logError: (error: unknown, sentence: string) => void
  ) {
    this.#providers = providers
    this.#surfaces = surfaces
    this.#resolver = resolver
    this.#logError = logError
  }

  /**
   * Notifies a listener of changes from now on, even if its client has listed nothing.
   * @param address the IP address of the client, if known
   */
  addListener (listener: Listener<View>, client: Client, address?: string): void {
    const { parts } = this.#surfaces.of(this.#surfaces.filtered(listener.view, address), client)
    const seen: ListenerEntry['seen'] = {}
    for (const kind of allListKinds) if (concerns(kind, listener, client)) seen[kind] = parts[kind].list.ref
    this.#entries.set(listener, { client, seen, wanted: new SubscribedResources(), address })
  }

  removeListener (listener: Listener<View>): void {
    this.#entries.get(listener)?.wanted.clear()
    this.#entries.delete(listener)
  }

  /** The resources to which a client subscribes; undefined for a client without a listener. */
  subscribedResourcesOf (exchange: Pick<Exchange, 'client' | 'address'>): SubscribedResources | undefined {
    return this.#entryOf(exchange)?.wanted
  }

  /** Records the list that a client has just received. */
  recordSeenList (exchange: Pick<Exchange, 'client' | 'address'>, list: ListResult): void {
    const entry = this.#entryOf(exchange)
    if (entry) entry.seen[list.kind] = list.ref
  }

  #entryOf ({ client: { listener }, address }: Pick<Exchange, 'client' | 'address'>): ListenerEntry | undefined {
    const entry = listener && this.#entries.get(listener as Listener<View>)
    if (entry) entry.address = address
    return entry
  }

  /** The view of a listener, without the items that hooks hide at its client's last known address. */
  #viewOf ({ view }: Listener<View>, { address }: ListenerEntry): View { return this.#surfaces.filtered(view, address) }

  /** Notifies the listeners whose lists have changed, after `collectTime`. */
  scheduleNotifications (): void {
    this.#pending ??= setTimeout(() => {
      this.#pending = undefined
      // A change during a notification is handled after it.
      if (this.#notifying) this.scheduleNotifications()
      else void this.#notifyOfChanges().finally(() => { this.#notifying = false })
    }, collectTime).unref()
  }

  close (): void { clearTimeout(this.#pending) }

  async #notifyOfChanges (): Promise<void> {
    this.#notifying = true
    const entries = [...this.#entries]
    const budget = new LoopBudget()
    for (const [listener, entry] of entries) {
      if (!this.#entries.has(listener)) continue
      try {
        this.#notify(listener, entry)
      } catch (error) {
        this.#logError(error, 'a client could not be notified of changed lists')
      }
      if (budget.isSpent) await budget.yieldToEventLoop()
    }
    this.#surfaces.dropStale()
  }

  #notify (listener: Listener<View>, entry: ListenerEntry): void {
    const view = this.#viewOf(listener, entry)
    if (entry.wanted.isMissing) this.#resubscribe(view, entry)
    const { parts } = this.#surfaces.of(view, entry.client)
    const changed = new Set<string>()
    for (const kind of allListKinds) {
      if (hasListChanged(entry, parts[kind].list)) changed.add(listChangedMethod(kind))
    }
    for (const method of changed) listener.deliver(method)
  }

  /**
   * Sends a provider's notification to the listeners that see the provider, and whose clients satisfy `serves`; one of
   * an unknown kind only on the route of that provider. Log messages below a listener's level, and notifications beyond
   * `gatewayLimits.broadcastSize`, are dropped.
   */
  broadcast (provider: string, method: string, paramsText: string, serves: (client: Client) => boolean): void {
    const isLog = method === 'notifications/message'
    const level = isLog ? parseSmallMember(paramsText, 'level') : undefined
    const sees = this.#seenBy(provider)
    const wants = ({ level: least, view: { scope } }: Listener<View>): boolean => isLog
      ? least === undefined || meetsLogLevel(level, least)
      : scope.kind === 'server'
    const listeners = [...this.#entries].filter(([listener, { client }]) =>
      wants(listener) && sees(listener.view) && serves(client))
    if (paramsText.length * listeners.length > gatewayLimits.broadcastSize) return
    for (const [listener] of listeners) listener.deliver(method, paramsText)
  }

  /** Returns a function that tells whether a view includes a provider, with a cache of results by view key. */
  #seenBy (provider: string): (view: View) => boolean {
    const known = new Map<string, boolean>()
    return (view) => {
      const seen = known.get(view.key) ?? this.#surfaces.visible(view).some(({ server }) => server.name === provider)
      known.set(view.key, seen)
      return seen
    }
  }

  /**
   * Applies changed settings. A client's calls, subscriptions and links end at servers that it may no longer see. Its
   * subscription to a resource moves if the client now reads the resource from another provider.
   */
  applyAccess (): void {
    const visible = new Map<string, ReadonlySet<string>>()
    for (const [listener, entry] of [...this.#entries]) {
      const { client, wanted } = entry
      const view = this.#viewOf(listener, entry)
      const used = this.#providers.usedBy(client)
      if (used.length === 0 && wanted.size === 0) continue
      const names = visible.get(view.key) ?? new Set(this.#surfaces.visible(view).map(({ server }) => server.name))
      visible.set(view.key, names)
      const lost = new Set(used.filter(({ name }) => !names.has(name)).map(({ name }) => name))
      this.#endSubscriptions(view, client, lost)
      this.#resubscribe(view, entry, lost)
      if (lost.size > 0) this.#providers.release(client, lost).catch(() => {})
    }
  }

  /**
   * Ends a client's subscriptions at providers from which the client may no longer read the resource.
   * @param lost the providers that the client may no longer see; `release` ends the subscriptions there
   */
  #endSubscriptions (view: View, client: Client, lost: ReadonlySet<string>): void {
    for (const provider of this.#providers.usedBy(client)) {
      if (lost.has(provider.name)) continue
      for (const uri of provider.subscriptions?.(client) ?? []) {
        if (!this.#resolver.canRead(view, client, provider.name, uri)) {
          provider.unsubscribe?.(client, uri).catch(() => {})
        }
      }
    }
  }

  /**
   * Renews a client's missing subscriptions to resources that its view shows.
   * @param lost the providers that the client may no longer see
   */
  #resubscribe (view: View, { client, wanted }: ListenerEntry, lost = none): void {
    wanted.isMissing = false
    if (wanted.size === 0) return
    const held = new Set(this.#providers.usedBy(client).flatMap((provider) =>
      lost.has(provider.name) ? [] : provider.subscriptions?.(client) ?? []))
    for (const uri of wanted.uris) {
      if (held.has(uri)) continue
      const reader = this.#resolver.currentResourceProvider(view, client, uri)
      if (reader === undefined || lost.has(reader) || !this.#resubscribeAt(reader, client, uri)) wanted.isMissing = true
    }
  }

  /** @returns false if the provider currently accepts no subscription */
  #resubscribeAt (name: string, client: Client, uri: string): boolean {
    try {
      this.#providers.use(name, client).resubscribe?.(client, uri)
      return true
    } catch (error) {
      if (error instanceof RpcError) return false
      throw error
    }
  }
}

/**
 * Whether a client that has not received a list is notified when the list changes. Changed skills are announced only to
 * clients that declare the Skills extension, changed event types only to clients that request this notification.
 */
function concerns (kind: ListKind, { isFiltered = false }: Listener<View>, { capabilities }: Client): boolean {
  const extension = listExtensionOf(kind)
  if (extension === undefined) return true
  return kind === 'events' ? isFiltered : hasExtension(capabilities, extension)
}

/**
 * Whether a list differs from the list that the client received last. Records the list as received. Returns false for
 * kinds of lists about whose changes the client is not notified.
 */
function hasListChanged ({ seen }: ListenerEntry, list: ListResult): boolean {
  const ref = seen[list.kind]
  const former = ref?.deref()
  if (ref === undefined || former === list) return false
  seen[list.kind] = list.ref
  return former?.equals(list) !== true
}
