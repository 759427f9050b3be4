import type { Client } from '../../protocol/exchange.ts'
import { smallMemberOf } from '../../protocol/json.ts'
import { kinds, listKinds, type ListKind } from '../../protocol/lists.ts'
import { reaches, type Listener } from '../../protocol/listener.ts'
import type { View } from '../access/view.ts'
import { limits } from '../limits/index.ts'
import type { List } from './list.ts'
import type { Providers } from './providers.ts'
import type { Resolver } from './resolve.ts'
import type { Surfaces } from './surfaces.ts'

/** Time for which changes are collected before listeners are notified, in ms. */
const settleTime = 50
/** Listeners that are notified before yielding to the event loop. */
const batchSize = 100

/** The client of a listener, and the lists that it got last. */
interface Member { readonly client: Client, readonly seen: Map<ListKind, List> }

/**
 * Sends clients the notifications that belong to no request (changed lists, messages of providers), and applies withdrawn access. It
 * reaches clients through their listeners only.
 */
export class News {
  readonly #providers: Providers
  readonly #surfaces: Surfaces
  readonly #resolver: Resolver
  readonly #members = new Map<Listener<View>, Member>()
  #pending: NodeJS.Timeout | undefined

  constructor (providers: Providers, surfaces: Surfaces, resolver: Resolver) {
    this.#providers = providers
    this.#surfaces = surfaces
    this.#resolver = resolver
  }

  /** Notifies a listener of all changes from now on, even if its client has not listed anything yet. */
  join (listener: Listener<View>, client: Client): void {
    const { parts } = this.#surfaces.of(listener.view, client)
    this.#members.set(listener, { client, seen: new Map(kinds.map((kind) => [kind, parts[kind].list])) })
  }

  leave (listener: Listener<View>): void { this.#members.delete(listener) }

  /** Records the list that a client has just got. */
  saw (client: Client, list: List): void {
    const { listener } = client
    if (listener) this.#members.get(listener as Listener<View>)?.seen.set(list.kind, list)
  }

  /** Called when the lists of a provider or the settings have changed: listeners that see a difference are notified soon. */
  changed (): void {
    this.#pending ??= setTimeout(() => { this.#pending = undefined; void this.#notifyOfChanges() }, settleTime).unref()
  }

  close (): void { clearTimeout(this.#pending) }

  async #notifyOfChanges (): Promise<void> {
    let notified = 0
    for (const [listener, member] of [...this.#members]) {
      if (!this.#members.has(listener)) continue
      const { parts } = this.#surfaces.of(listener.view, member.client)
      const changed = new Set<string>()
      for (const kind of kinds) if (isNews(member, parts[kind].list)) changed.add(listKinds[kind].capability)
      for (const list of changed) listener.deliver(`notifications/${list}/list_changed`)
      // Thousands of sessions must not delay a call.
      if (++notified % batchSize === 0) await new Promise((resolve) => { setImmediate(resolve) })
    }
  }

  /** Sends a provider's notification to every listener that sees the provider and whose client `serves` accepts. */
  broadcast (provider: string, method: string, paramsText: string, serves: (client: Client) => boolean): void {
    const isLog = method === 'notifications/message'
    const level = isLog ? smallMemberOf(paramsText, 'level') : undefined
    const sees = this.#seenBy(provider)
    const listeners = [...this.#members].filter(([listener, { client }]) =>
      !(isLog && listener.level !== undefined && !reaches(level, listener.level)) && sees(listener.view) && serves(client))
    if (paramsText.length * listeners.length > limits.broadcastSize) return
    for (const [listener] of listeners) listener.deliver(method, paramsText)
  }

  /** Whether a view sees a provider, decided once per view key. */
  #seenBy (provider: string): (view: View) => boolean {
    const known = new Map<string, boolean>()
    return (view) => {
      const seen = known.get(view.key) ?? this.#surfaces.visible(view).some(({ server }) => server.name === provider)
      known.set(view.key, seen)
      return seen
    }
  }

  /** Applies changed settings: at servers that a client does not see any more, its calls, subscriptions and own links end. */
  withdraw (): void {
    const visible = new Map<string, ReadonlySet<string>>()
    for (const [{ view }, { client }] of [...this.#members]) {
      const used = this.#providers.usedBy(client)
      if (used.length === 0) continue
      const names = visible.get(view.key) ?? new Set(this.#surfaces.visible(view).map(({ server }) => server.name))
      visible.set(view.key, names)
      const lost = new Set(used.filter(({ name }) => !names.has(name)).map(({ name }) => name))
      this.#moveSubscriptions(view, client, lost)
      if (lost.size > 0) this.#providers.release(client, lost).catch(() => {})
    }
  }

  /**
   * Moves subscriptions to the provider from which the client would read the resource now.
   * @param lost the providers that it does not see any more, which drop its subscriptions themselves
   */
  #moveSubscriptions (view: View, client: Client, lost: ReadonlySet<string>): void {
    for (const provider of this.#providers.usedBy(client)) {
      for (const uri of provider.subscriptions?.(client) ?? []) {
        if (!lost.has(provider.name) && this.#resolver.mayRead(view, client, provider.name, uri)) continue
        const reader = this.#resolver.readerNow(view, client, uri)
        if (reader !== undefined) this.#providers.use(reader, client).subscribe?.(client, uri).catch(() => {})
        if (!lost.has(provider.name)) provider.unsubscribe?.(client, uri).catch(() => {})
      }
    }
  }
}

/** True when a list differs from the one that its client got last; the next call returns false. */
function isNews ({ seen }: Member, list: List): boolean {
  const last = seen.get(list.kind)
  if (last === undefined || last === list) return false
  seen.set(list.kind, list)
  return !last.equals(list)
}
