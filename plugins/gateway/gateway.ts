import type { Tasks } from '../../db/ports/tasks.ts'
import type { EventPresentation } from '../../protocol/events.ts'
import { gatewayClient, type Client, type Exchange } from '../../protocol/exchange.ts'
import type { Catalogue, NamedKind } from '../../protocol/lists.ts'
import type { Listener } from '../../protocol/listener.ts'
import type { Provider, ProviderHost, ProviderSource } from '../../protocol/provider.ts'
import type { ServerConfig } from '../../schemas/server.ts'
import type { Sealer } from '../base/secrets/index.ts'
import type { Access, ItemKind, PresentationName, RegisteredProvider, View } from '../settings/index.ts'
import { describeRoute, type RouteIdentity } from './describe.ts'
import type { EventTypeTarget } from './event-cursors.ts'
import { screenNotification, type GatewayHooks } from './hooks.ts'
import { findEventType, ownEventMembers, presentEvent, type ShownEventType } from './methods/events.ts'
import { isNotificationMethod, methodFor } from './methods/index.ts'
import { findItemProvider, resolveItem } from './methods/items.ts'
import type { GatewayParts, MethodHandler, MethodResult } from './methods/method.ts'
import type { Notifier } from './notifier.ts'
import { createParts, createProviderHost } from './parts.ts'
import type { Presentation } from './surfaces.ts'
import type { Precedence } from './precedence.ts'
import type { RunningTasks } from './running-tasks.ts'
import { type ViewSection, type ItemTarget, withoutHidden } from './section.ts'
import type { Surface } from './surface.ts'

export type { MethodResult }

interface GatewayDeps {
  access: Pick<Access, 'snapshot' | 'visibleServers' | 'register'>
  /** The gateway's own `serverInfo`, for routes that merge several servers. */
  serverInfo: { name: string, version: string }
  logError: (error: unknown, sentence: string) => void
  /** Encrypts task ids and event cursors for clients. Default: only this process can decrypt them. */
  sealer?: Sealer | undefined
  /** Stores tasks, so that they can be listed. Default: they are not stored. */
  tasks?: Tasks
}

/** The settings of a registered provider, as those of a server: its visibility, and overrides of its items. */
export type ProviderEntry = Pick<ServerConfig, 'owner' | 'visibility' | 'description' | 'enabled' | ItemKind>

/**
 * `unprefixed`: on merged routes, its items keep their names without a prefix, and come after those of all servers.
 * `memberIn`: on which routes it is, and with which items (`RegisteredProvider`).
 */
type ProviderOptions = Partial<Pick<RegisteredProvider, 'unprefixed' | 'memberIn'>>

/** Lists and runs the tools, prompts and resources that a View sees. */
export class Gateway {
  readonly #parts: GatewayParts
  readonly #access: GatewayDeps['access']
  readonly #serverInfo: string
  readonly #host: ProviderHost
  readonly #methods = new Map<string, MethodHandler>()

  constructor ({ access, serverInfo, logError, sealer, tasks }: GatewayDeps) {
    this.#parts = createParts(access, logError, sealer, tasks)
    this.#access = access
    this.#serverInfo = JSON.stringify(serverInfo)
    this.#host = createProviderHost(this.#parts)
  }

  /** The number of requests whose provider has not answered. */
  get inFlight (): number { return this.#parts.forwarder.inFlight }

  /** The tasks that clients created. */
  get tasks (): RunningTasks { return this.#parts.runningTasks }

  /** Registers a hook. Hooks run in the order of registration. */
  addHook<Name extends keyof GatewayHooks> (name: Name, hook: GatewayHooks[Name]): void {
    this.#parts.hooks[name].push(hook)
  }

  /**
   * Registers the handler of a request method that the gateway itself does not implement.
   * @param run returns the text of the result, or throws an RpcError to answer with
   */
  addMethod (name: string, run: (exchange: Exchange<View>) => Promise<string>): void {
    this.#methods.set(name, async (_parts, exchange) => await run(exchange))
  }

  /** Sends a request to a provider, with some params replaced. @throws RpcError */
  async send (
    exchange: Exchange<View>, provider: string, item: string | undefined, changes: Readonly<Record<string, string>>
  ): Promise<string> {
    return await this.#parts.forwarder.send(exchange, provider, item, changes)
  }

  /** Finds the event type that a request names. @throws RpcError -32601 if no server has events; NotFound */
  async findEventType (
    exchange: Exchange<View>
  ): Promise<ShownEventType> { return await findEventType(this.#parts, exchange) }

  /** The server's name and cursor for those in a client's request. @throws RpcError if the cursor is not valid */
  ownEventMembers (exchange: Exchange<View>, event: EventTypeTarget): { name: string, cursor: string } {
    return ownEventMembers(this.#parts, exchange, event)
  }

  /** What differs in the events of a type as a view sees them. @param name the event type's name in the view */
  presentEvent (view: View, event: EventTypeTarget, name: string): EventPresentation {
    return presentEvent(this.#parts.cursors, view, event, name)
  }

  /** Passes the JSON text of a provider's event through the hooks. @returns undefined if it must not be delivered */
  async screenEvent (provider: string, text: string): Promise<string | undefined> {
    return await screenNotification(this.#parts.hooks, provider, text)
  }

  /** Registers a changing set of providers, which have the names of configured servers. */
  addSource (source: ProviderSource): void { this.#parts.providers.addSource(source, this.#host) }

  /**
   * Registers a provider that is not a configured server.
   * @param entry default: visible to everybody
   * @returns a function to call when the lists of the provider have changed
   */
  addProvider (
    provider: Provider, entry: ProviderEntry = { visibility: 'public' }, options: ProviderOptions = {}
  ): () => void {
    this.#access.register({ name: provider.name, config: entry, ...options })
    this.#parts.providers.add(provider)
    this.#host.onListsChanged()
    return this.#host.onListsChanged
  }

  /** Registers a provider without lists, for the resources under its `uriPrefix`. Servers must not have its name. */
  addReader (provider: Provider & { readonly uriPrefix: string }): void { this.#parts.providers.add(provider) }

  /**
   * Registers a presentation, which replaces the items that a view sees, and the provider of the items that it adds.
   * @returns a function to call when the added items have changed
   */
  addPresentation (name: PresentationName, { provider, present }: Presentation): () => void {
    this.#parts.providers.add(provider)
    this.#parts.surfaces.addPresentation(name, present)
    return this.#host.onListsChanged
  }

  /** Handles a request. @returns the text of its result, or a list to serialize @throws RpcError to answer with */
  handle (exchange: Exchange<View>): Promise<MethodResult> {
    if (this.#parts.hooks.onView.length > 0) exchange.view = this.filteredView(exchange.view, exchange.address)
    return methodFor(exchange.method, this.#methods)(this.#parts, exchange)
  }

  /** Returns a view without the items that hooks hide from a request with this address; undefined: unknown. */
  filteredView (view: View, address: string | undefined): View { return this.#parts.surfaces.filtered(view, address) }

  /** Notifies clients whose lists have changed, for example because hooks hide other items. */
  announceChanges (): void { this.#parts.notifier.scheduleNotifications() }

  /** Relays a client's notification to the providers in its view. */
  notify (view: View, client: Client, method: string, paramsText: string): void {
    const isForAll = method === 'notifications/roots/list_changed'
    if (!isNotificationMethod(method) || (!isForAll && view.scope.kind !== 'server')) return
    for (const { provider } of this.#parts.surfaces.sections(view, client)) {
      provider?.notify?.(client, method, paramsText)
    }
  }

  /**
   * Describes a route. Waits for providers whose lists are unknown.
   * @param mayBeUnavailable whether to describe a route even if nothing is known about its only server
   * @throws RpcError for such a route otherwise
   */
  async describe (view: View, client: Client, mayBeUnavailable = false): Promise<RouteIdentity> {
    return await describeRoute(this.#parts, view, client, this.#serverInfo, mayBeUnavailable)
  }

  /**
   * The `serverInfo` of a route, as JSON text: that of its only server, or the gateway's. Undefined if that of its only
   * server is not valid.
   * @param surface of the view, if known
   */
  serverInfo (view: View, client: Client, surface = this.surface(view, client)): string | undefined {
    if (view.presentation !== 'raw') return this.#serverInfo
    const { serverInfo, hasValidServerInfo } = surface.serverInfo === undefined ? this.surface(view, client) : surface
    return serverInfo === undefined ? this.#serverInfo : hasValidServerInfo ? serverInfo : undefined
  }

  /** Notifies a listener of all changes from now on. @param given may include the client's address */
  addListener (...given: Parameters<Notifier['addListener']>): void { this.#parts.notifier.addListener(...given) }

  /** Removes a client that has disconnected: its listener, and its links, calls and subscriptions at providers. */
  async removeClient (client: Client): Promise<void> {
    if (client.listener) this.#parts.notifier.removeListener(client.listener as Listener<View>)
    await this.#parts.providers.release(client)
  }

  /** Applies changed settings: ends calls, subscriptions and links of clients at servers that they may not see. */
  applyAccess (): void { this.#parts.notifier.applyAccess() }

  /** Ends the event streams of views without access, and of event types that are no longer shown. */
  endStreams (hasAccess: (view: View) => boolean): void { this.#parts.streams.revoke(hasAccess) }

  /** What a view shows to a client, as currently known. */
  surface (view: View, client: Client): Surface { return this.#parts.surfaces.of(view, client) }

  /** The surface of a request's view. Waits for the catalogues of its providers, each for a limited time. */
  async waitForSurface (exchange: Exchange<View>): Promise<Surface> {
    return await this.#parts.resolver.waitForSurface(exchange)
  }

  /** The servers that a view currently includes, with their catalogues for a client. Items have their own names. */
  sections (view: View, client: Client): ViewSection[] { return this.#parts.surfaces.sections(view, client) }

  /** Decides which of these sections owns a name that consists of label, separator and an item's own name. */
  precedence (sections: readonly ViewSection[], separator: string): Precedence {
    return this.#parts.surfaces.precedence(sections, separator)
  }

  /** The target of a name of a tool, prompt or event type, as currently known. */
  lookUp (view: View, client: Client, kind: NamedKind, name: string): ItemTarget | undefined {
    return this.lookUpIn(view, this.surface(view, client), kind, name)
  }

  /** Like `lookUp`, in a given surface of the view. */
  lookUpIn (view: View, surface: Surface, kind: NamedKind, name: string): ItemTarget | undefined {
    return this.#parts.resolver.lookUpName(view, surface, kind, name)
  }

  /** Like `lookUp`, but waits for providers. @throws RpcError -32001 if the only one is not connected */
  async resolve (exchange: Exchange<View>, kind: NamedKind, name: string): Promise<ItemTarget | undefined> {
    return await this.#parts.resolver.findByName(exchange, kind, name)
  }

  /** The name under which a view shows a provider's item; undefined if it does not, as currently known. */
  exposedName (view: View, client: Client, kind: NamedKind, provider: string, key: string): string | undefined {
    return this.#parts.resolver.exposedName(view, this.surface(view, client), kind, provider, key)
  }

  /** The provider from which a view reads the requested resource. @throws RpcError -32002 if the view shows none */
  async findResourceProvider (exchange: Exchange<View>): Promise<string> {
    return (await this.#parts.resolver.findResource(exchange)).provider
  }

  /** The provider to which a call, prompt or read request would be sent. @throws RpcError if there is no such item */
  async providerOf (exchange: Exchange<View>): Promise<string> { return await findItemProvider(this.#parts, exchange) }

  /**
   * Waits until the lists of a call's provider are known.
   * @throws RpcError -32001 if they are unknown and cannot be read now; hooks then see the call as failed
   */
  async waitForLists (exchange: Exchange<View>, provider: string, item: string): Promise<void> {
    await resolveItem(
      this.#parts, exchange, item, async () => { await this.#parts.resolver.waitForLists(provider, exchange.client) }
    )
  }

  /**
   * A provider's catalogue for clients without capabilities; undefined if unknown. Items have their own names.
   * @param view whose hidden items are omitted
   */
  catalogue (provider: string, view?: View): Catalogue | undefined {
    const catalogue = this.#parts.providers.get(provider)?.catalogue(gatewayClient)
    return catalogue && this.#shownIn(view, provider, [catalogue])[0]
  }

  /** A provider's catalogue for a client; undefined if unknown. Items have their own names. */
  catalogueFor (provider: string, client: Client): Catalogue | undefined {
    return this.#parts.providers.get(provider)?.catalogue(client)
  }

  /** The known catalogues of a provider, for all capability classes. @param view as for `catalogue` */
  catalogues (provider: string, view?: View): readonly Catalogue[] {
    return this.#shownIn(view, provider, this.#parts.providers.get(provider)?.catalogues?.() ?? [])
  }

  /** Catalogues without the items that hooks hide from a view. */
  #shownIn (view: View | undefined, provider: string, catalogues: readonly Catalogue[]): readonly Catalogue[] {
    const filter = view && this.filteredView(view, view.principal.address).filter
    return filter ? catalogues.map((each) => withoutHidden(each, provider, filter)) : catalogues
  }

  /** Masks the secrets of a provider's configuration in a text. */
  redact (provider: string, text: string): string {
    return this.#parts.providers.get(provider)?.redact?.(text) ?? text
  }

  /** Ends notifications. Resolves when the links, calls and subscriptions of removed clients have ended. */
  async close (): Promise<void> {
    this.#parts.notifier.close()
    await this.#parts.providers.waitForReleases()
  }
}
