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
import { findEventType, toServerEventMembers, createEventPresentation, type ShownEventType } from './methods/events.ts'
import { isNotificationMethod, methodFor } from './methods/index.ts'
import { findItemProvider, resolveOrFailCall } from './methods/items.ts'
import type { GatewayParts, MethodHandler, MethodResult } from './methods/method.ts'
import type { Notifier } from './notifier.ts'
import { createGatewayParts, createProviderHost } from './parts.ts'
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
  /** Encrypts task ids and event cursors for clients. Default: with a random key that only this process has. */
  sealer?: Sealer | undefined
  /** Stores the tasks that clients created, so that they can be listed. Default: tasks are not stored. */
  tasks?: Tasks
}

/** The settings of a registered provider: members of a server's config, such as visibility and item overrides. */
export type ProviderSettings = Pick<ServerConfig, 'owner' | 'visibility' | 'description' | 'enabled' | ItemKind>

/**
 * `unprefixed`: on merged routes, the provider's items have no prefix, and are listed after the items of all servers.
 * `memberIn`: decides which routes include the provider, and which of its items; see `RegisteredProvider`.
 */
type ProviderOptions = Partial<Pick<RegisteredProvider, 'unprefixed' | 'memberIn'>>

/** Lists the items that a View shows (tools, prompts, resources and others), and handles requests for them. */
export class Gateway {
  readonly #parts: GatewayParts
  readonly #access: GatewayDeps['access']
  readonly #serverInfo: string
  readonly #host: ProviderHost
  readonly #methods = new Map<string, MethodHandler>()

  constructor ({ access, serverInfo, logError, sealer, tasks }: GatewayDeps) {
    this.#parts = createGatewayParts(access, logError, sealer, tasks)
    this.#access = access
    this.#serverInfo = JSON.stringify(serverInfo)
    this.#host = createProviderHost(this.#parts)
  }

  /** The number of requests that wait for a provider's answer, without open event streams. */
  get inFlight (): number { return this.#parts.forwarder.inFlight }

  /** Lists and cancels the tasks that clients created. */
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

  /** Sends a request to a provider, and runs the hooks for it. @param changes new params, as JSON @throws RpcError */
  async send (
    exchange: Exchange<View>, provider: string, item: string | undefined, changes: Readonly<Record<string, string>>
  ): Promise<string> {
    return await this.#parts.forwarder.send(exchange, provider, item, changes)
  }

  /** Finds the event type that a request names. @throws RpcError -32601 if no server has events; NotFound (-32023) */
  async findEventType (
    exchange: Exchange<View>
  ): Promise<ShownEventType> { return await findEventType(this.#parts, exchange) }

  /** Converts a request's event name and cursor to the server's, as JSON. @throws RpcError for an invalid cursor */
  toServerEventMembers (exchange: Exchange<View>, event: EventTypeTarget): { name: string, cursor: string } {
    return toServerEventMembers(this.#parts, exchange, event)
  }

  /** Returns how clients see the events of a type: their name, and a function that converts cursors for clients. */
  createEventPresentation (view: View, event: EventTypeTarget, name: string): EventPresentation {
    return createEventPresentation(this.#parts.cursors, view, event, name)
  }

  /** Passes an event's JSON text through the hooks. @returns the text to deliver; undefined if a hook drops it */
  async screenEvent (provider: string, text: string): Promise<string | undefined> {
    return await screenNotification(this.#parts.hooks, provider, text)
  }

  /** Registers a source of providers, whose set may change. Its providers have the names of configured servers. */
  addSource (source: ProviderSource): void { this.#parts.providers.addSource(source, this.#host) }

  /**
   * Registers a provider that is not a configured server.
   * @param entry the provider's settings; default: visible to everybody
   * @returns a function to call when the lists of the provider have changed
   */
  addProvider (
    provider: Provider, entry: ProviderSettings = { visibility: 'public' }, options: ProviderOptions = {}
  ): () => void {
    this.#access.register({ name: provider.name, config: entry, ...options })
    this.#parts.providers.add(provider)
    this.#host.onListsChanged()
    return this.#host.onListsChanged
  }

  /** Registers a provider without lists that serves all URIs under its `uriPrefix`. No server may have its name. */
  addReader (provider: Provider & { readonly uriPrefix: string }): void { this.#parts.providers.add(provider) }

  /**
   * Registers a presentation, which replaces the items that a view shows, and its provider, which runs the items that
   * the presentation adds.
   * @returns a function to call when the added items have changed
   */
  addPresentation (name: PresentationName, { provider, present }: Presentation): () => void {
    this.#parts.providers.add(provider)
    this.#parts.surfaces.addPresentation(name, present)
    return this.#host.onListsChanged
  }

  /** Handles a request. @returns the JSON text of its result, or a list to serialize @throws RpcError to answer with */
  handle (exchange: Exchange<View>): Promise<MethodResult> {
    if (this.#parts.hooks.onView.length > 0) exchange.view = this.filteredView(exchange.view, exchange.address)
    return methodFor(exchange.method, this.#methods)(this.#parts, exchange)
  }

  /** Returns a view without the items that hooks hide. @param address the client's IP address; undefined: unknown */
  filteredView (view: View, address: string | undefined): View { return this.#parts.surfaces.filtered(view, address) }

  /** Notifies clients whose lists have changed, for example because hooks hide other items. */
  announceChanges (): void { this.#parts.notifier.scheduleNotifications() }

  /**
   * Relays a client's notification to the providers in its view. On routes of several servers, only
   * `notifications/roots/list_changed` is relayed.
   */
  notify (view: View, client: Client, method: string, paramsText: string): void {
    const isForAll = method === 'notifications/roots/list_changed'
    if (!isNotificationMethod(method) || (!isForAll && view.scope.kind !== 'server')) return
    const { surfaces, providers } = this.#parts
    for (const { server: { name }, provider } of surfaces.sections(view, client)) {
      if (provider?.notify) providers.use(name, client).notify?.(client, method, paramsText)
    }
  }

  /**
   * Describes a route. Waits, for a limited time, for providers whose lists are unknown.
   * @param mayBeUnavailable whether to describe the route of a single server even if nothing is known about the server
   * @throws RpcError -32001 if nothing is known about the only server, unless `mayBeUnavailable`
   */
  async describe (view: View, client: Client, mayBeUnavailable = false): Promise<RouteIdentity> {
    return await describeRoute(this.#parts, view, client, this.#serverInfo, mayBeUnavailable)
  }

  /**
   * The `serverInfo` of a route, as JSON text: for a single server, the server's own; undefined if it is not valid. For
   * other routes, and for a server whose `serverInfo` is unknown, the gateway's own.
   * @param surface the view's surface, if the caller knows it
   */
  serverInfo (view: View, client: Client, surface = this.surface(view, client)): string | undefined {
    if (view.presentation !== 'raw') return this.#serverInfo
    const { serverInfo, hasValidServerInfo } = surface.serverInfo === undefined ? this.surface(view, client) : surface
    return serverInfo === undefined ? this.#serverInfo : hasValidServerInfo ? serverInfo : undefined
  }

  /** Notifies a listener of changes from now on. @param given the listener, its client, and the address if known */
  addListener (...given: Parameters<Notifier['addListener']>): void { this.#parts.notifier.addListener(...given) }

  /** Removes a disconnected client: its listener, and its links, calls and subscriptions at providers. */
  async removeClient (client: Client): Promise<void> {
    if (client.listener) this.#parts.notifier.removeListener(client.listener as Listener<View>)
    await this.#parts.providers.release(client)
  }

  /**
   * Applies changed settings: ends the calls, subscriptions and links of clients at servers that the clients may no
   * longer see.
   */
  applyAccess (): void { this.#parts.notifier.applyAccess() }

  /** Ends the event streams of views without access, and of event types that their view no longer shows. */
  endStreams (hasAccess: (view: View) => boolean): void { this.#parts.streams.revoke(hasAccess) }

  /** What a view shows to a client, from the lists that are known now. */
  surface (view: View, client: Client): Surface { return this.#parts.surfaces.of(view, client) }

  /** Waits, for a limited time, for the catalogues of the view's providers, and returns the view's surface. */
  async waitForSurface (exchange: Exchange<View>): Promise<Surface> {
    return await this.#parts.resolver.waitForSurface(exchange)
  }

  /** The servers that a view currently includes, with their catalogues for a client. Items have no prefix. */
  sections (view: View, client: Client): ViewSection[] { return this.#parts.surfaces.sections(view, client) }

  /** Returns an object that decides which of these sections owns a prefixed name (`<label><separator><own name>`). */
  precedence (sections: readonly ViewSection[], separator: string): Precedence {
    return this.#parts.surfaces.precedence(sections, separator)
  }

  /** Finds a tool, prompt or event type by its name in the view, in the lists that are known now. */
  lookUp (view: View, client: Client, kind: NamedKind, name: string): ItemTarget | undefined {
    return this.lookUpIn(view, this.surface(view, client), kind, name)
  }

  /** Like `lookUp`, in a given surface of the view. */
  lookUpIn (view: View, surface: Surface, kind: NamedKind, name: string): ItemTarget | undefined {
    return this.#parts.resolver.lookUpName(view, surface, kind, name)
  }

  /**
   * Like `lookUp`, but waits for providers whose lists are unknown.
   * @throws RpcError -32001 if the only provider that can have the item is not connected
   */
  async resolve (exchange: Exchange<View>, kind: NamedKind, name: string): Promise<ItemTarget | undefined> {
    return await this.#parts.resolver.findByName(exchange, kind, name)
  }

  /** The name under which a view shows a provider's item; undefined if the view does not show the item now. */
  exposedName (view: View, client: Client, kind: NamedKind, provider: string, key: string): string | undefined {
    return this.#parts.resolver.exposedName(view, this.surface(view, client), kind, provider, key)
  }

  /** The provider of the resource that a request names. @throws RpcError -32002 if the view does not show it */
  async findResourceProvider (exchange: Exchange<View>): Promise<string> {
    return (await this.#parts.resolver.findResource(exchange)).provider
  }

  /**
   * The provider to which `tools/call`, `prompts/get` or `resources/read` would be sent.
   * @throws RpcError if the view does not show the item
   */
  async providerOf (exchange: Exchange<View>): Promise<string> { return await findItemProvider(this.#parts, exchange) }

  /**
   * Waits until the lists of a call's provider are known.
   * @param item the provider's name of the called tool, for hooks
   * @throws RpcError -32001 if the lists are unknown and cannot be read now; hooks then see a failed call
   */
  async waitForLists (exchange: Exchange<View>, provider: string, item: string): Promise<void> {
    await resolveOrFailCall(
      this.#parts, exchange, item, async () => { await this.#parts.resolver.waitForLists(provider, exchange.client) }
    )
  }

  /**
   * A provider's catalogue for clients without capabilities; undefined if unknown. Items have no prefix.
   * @param view if given, the items that hooks hide from this view are omitted
   */
  catalogue (provider: string, view?: View): Catalogue | undefined {
    const catalogue = this.#parts.providers.get(provider)?.catalogue(gatewayClient)
    return catalogue && this.#shownIn(view, provider, [catalogue])[0]
  }

  /** A provider's catalogue for a client; undefined if unknown. Items have no prefix. */
  catalogueFor (provider: string, client: Client): Catalogue | undefined {
    return this.#parts.providers.get(provider)?.catalogue(client)
  }

  /** A provider's known catalogues, for all capability classes. @param view omits what hooks hide from this view */
  catalogues (provider: string, view?: View): readonly Catalogue[] {
    return this.#shownIn(view, provider, this.#parts.providers.get(provider)?.catalogues?.() ?? [])
  }

  /** Returns catalogues without the items that hooks hide from a view; without a view, unchanged catalogues. */
  #shownIn (view: View | undefined, provider: string, catalogues: readonly Catalogue[]): readonly Catalogue[] {
    const filter = view && this.filteredView(view, view.principal.address).filter
    return filter ? catalogues.map((each) => withoutHidden(each, provider, filter)) : catalogues
  }

  /** Masks the secrets of a provider's configuration in a text. The text of an unknown provider is not changed. */
  redact (provider: string, text: string): string {
    return this.#parts.providers.get(provider)?.redact?.(text) ?? text
  }

  /** Stops notifying listeners of changed lists. Resolves when the calls and links of removed clients have ended. */
  async close (): Promise<void> {
    this.#parts.notifier.close()
    await this.#parts.providers.waitForReleases()
  }
}
