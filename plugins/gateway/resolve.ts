import { lostServerClause, rpcCode, RpcError } from '../../protocol/errors.ts'
import type { Client, Exchange } from '../../protocol/exchange.ts'
import type { NamedKind } from '../../protocol/lists.ts'
import type { Provider } from '../../protocol/provider.ts'
import { waitAtMost } from '../../protocol/wait-at-most.ts'
import {
  alternativeItemName, hasHashSuffix, canBeShownAs, prefixedName, acceptedPrefixesOf, prefixOf, type View
} from '../settings/index.ts'
import { mcpAppProviderOf } from './app-resources.ts'
import type { ProviderTable } from './providers.ts'
import type { ResourceLinks } from './resource-links.ts'
import type { ItemTarget } from './section.ts'
import { isResourceHidden, findResourceTarget, type Surface } from './surface.ts'
import type { Surfaces } from './surfaces.ts'
import { gatewayLimits } from './limits.ts'

/** Max names with the same prefix whose hashes are compared with a given name. */
const maxHashed = 500

/** Resolves names and URIs to the providers and items of a view. Items that the view does not show are not found. */
export class ItemResolver {
  readonly #surfaces: Surfaces
  readonly #providers: ProviderTable
  readonly #links: ResourceLinks

  /** @param links the resources to which results have linked */
  constructor (surfaces: Surfaces, providers: ProviderTable, links: ResourceLinks) {
    this.#surfaces = surfaces
    this.#providers = providers
    this.#links = links
  }

  /** The target of an item's exposed name. Routes with raw names also accept the names of merged routes. */
  lookUpName (view: View, surface: Surface, kind: NamedKind, name: string): ItemTarget | undefined {
    const { targets, aliases } = surface.parts[kind]
    const found = targets.get(name) ?? aliases.get(name)
    if (found || view.presentation !== 'raw' || view.scope.kind !== 'server') return found
    const { name: server } = view.scope
    for (const prefix of acceptedPrefixesOf(server, this.#surfaces.separator)) {
      const target = name.startsWith(prefix) ? targets.get(name.slice(prefix.length)) : undefined
      if (target) return target
    }
    if (!hasHashSuffix(name)) return undefined
    // Routes with raw names also accept the hashed names of merged routes.
    const prefix = prefixOf(server, this.#surfaces.separator)
    let left = maxHashed
    for (const target of targets.values()) {
      const { key } = target
      if (!canBeShownAs(name, prefix, key)) continue
      if (left-- === 0) return undefined
      const exposed = prefixedName(prefix, key)
      if (exposed === name || alternativeItemName(exposed, server, key) === name) return target
    }
    return undefined
  }

  /** The name under which a view shows a provider's item; undefined if it does not. */
  exposedName (
    view: View, surface: Surface, kind: NamedKind, provider: string, key: string
  ): string | undefined {
    const { targets } = surface.parts[kind]
    if (view.presentation === 'raw') return targets.get(key)?.provider === provider ? key : undefined
    for (const [name, target] of targets) if (target.provider === provider && target.key === key) return name
    return undefined
  }

  /** Waits, for a limited time, for the catalogues of the view's providers. @returns the surface afterwards */
  async waitForSurface ({ view, client }: Exchange<View>): Promise<Surface> {
    const { providers } = this.#surfaces.of(view, client)
    await this.#providers.waitForLists(providers, client, view.scope.kind === 'server')
    return this.#surfaces.of(view, client)
  }

  /** @throws RpcError -32001 if the view has a single provider, and nothing is known about it, or it is gone */
  requireCatalogue ({ scope }: View, surface: Surface, client: Client): void {
    if (scope.kind !== 'server' || surface.capabilities.size > 0) return
    throw surface.providers.includes(scope.name)
      ? new NotConnectedError(scope.name, this.#providers.get(scope.name), client)
      : new NotConnectedError(scope.name, undefined, client, undefined, lostServerClause)
  }

  /** Waits for a provider's catalogue for this client. @throws RpcError -32001 if it is unknown and cannot be read */
  async waitForLists (name: string, client: Client): Promise<void> {
    await this.#providers.waitForLists([name], client, true)
    const provider = this.#providers.get(name)
    const isConnected = (provider?.status ?? 'connected') === 'connected'
    if (provider && !isConnected && !provider.catalogue(client)) throw new NotConnectedError(name, provider, client)
  }

  /**
   * Looks up an item in the surface. If it is not found, waits for the catalogues (`waitForSurface`), and looks again.
   * @throws the errors of `requireCatalogue`
   */
  async find<Found> (
    exchange: Exchange<View>, look: (surface: Surface) => Found | undefined
  ): Promise<Found | undefined> {
    const surface = this.#surfaces.of(exchange.view, exchange.client)
    const found = look(surface)
    if (found !== undefined) return found
    const settled = await this.waitForSurface(exchange)
    this.requireCatalogue(exchange.view, settled, exchange.client)
    return settled === surface ? undefined : look(settled)
  }

  /**
   * Finds an item by its name in the view. On merged routes, if the name starts with a provider's label and the
   * provider's lists for this client are unknown, waits for them.
   * @throws RpcError -32001 if that provider does not connect
   */
  async findByName (exchange: Exchange<View>, kind: NamedKind, name: string): Promise<ItemTarget | undefined> {
    const { view, client } = exchange
    const deadline = Date.now() + gatewayLimits.connectionWait
    const look = (surface: Surface): ItemTarget | undefined => this.lookUpName(view, surface, kind, name)
    const found = await this.find(exchange, look)
    if (found) return found
    if (view.scope.kind === 'server') {
      return await this.#read(view.scope.name, client, deadline) ? look(this.#surfaces.of(view, client)) : undefined
    }
    const prefixIn = (text: string, label: string): string | undefined =>
      acceptedPrefixesOf(label, this.#surfaces.separator).find((prefix) => text.startsWith(prefix))
    const meant = this.#surfaces.sections(view, client).filter(({ provider, label, catalogue }) =>
      prefixIn(name, label) !== undefined && (catalogue !== undefined || provider?.status === 'connecting'))
    const connecting =
      meant.flatMap(({ provider, catalogue, label }) => provider && !catalogue ? [{ name: provider.name, label }] : [])
    if (meant.length === 0) return undefined
    await this.#providers.waitForLists(meant.map(({ server }) => server.name), client, true)
    const target = look(this.#surfaces.of(view, client))
    if (target) return target
    for (const { name: each, label } of connecting) {
      const provider = this.#providers.get(each)
      if (!provider?.catalogue(client) && (provider?.status ?? 'connected') !== 'connected') {
        throw new NotConnectedError(each, provider, client, name.slice(prefixIn(name, label)?.length))
      }
    }
    let isRead = false
    for (const { server } of meant) isRead = await this.#read(server.name, client, deadline) || isRead
    return isRead ? look(this.#surfaces.of(view, client)) : undefined
  }

  /**
   * Reads a provider's lists for this client's capability class: a server may list some tools only to clients with
   * certain capabilities.
   * @param deadline in ms since the epoch
   * @returns false if they were known
   * @throws RpcError -32001 if they cannot be read, or not in time
   */
  async #read (name: string, client: Client, deadline: number): Promise<boolean> {
    const reading = this.#providers.loadListsForItem(name, client)
    if (!reading) return false
    const what = 'its lists for clients like this one'
    const read = reading.then(() => undefined, () => `${what} could not be read`)
    const problem = await waitAtMost(deadline - Date.now(), read, () => `${what} are still being read`)
    if (problem !== undefined) throw new NotConnectedError(name, this.#providers.get(name), client, undefined, problem)
    return true
  }

  /** The provider of the resource that a request names, listed or not. @throws RpcError -32002 if there is none */
  async findResource (exchange: Exchange<View>): Promise<ItemTarget> {
    const { view, client } = exchange
    const uri = stringParam(exchange, 'uri', 'the resource\'s URI')
    const own = this.#providers.ownerOf(uri)
    if (own !== undefined) return { provider: own.name, key: uri }
    const provider = await this.find(exchange, (surface) => this.#readerIn(view, surface, uri))
    if (provider !== undefined) return { provider, key: uri }
    // On a route of one server, unlisted resources can be read, unless they are hidden.
    const { scope } = view
    if (scope.kind === 'server' && !isResourceHidden(this.#surfaces.of(view, client), scope.name, uri)) {
      return { provider: scope.name, key: uri }
    }
    throw unknownResourceError(uri)
  }

  /** The provider from which a client can currently read a resource; undefined if none is known. */
  currentResourceProvider (view: View, client: Client, uri: string): string | undefined {
    const surface = this.#surfaces.of(view, client)
    const { scope } = view
    if (scope.kind !== 'server') return this.#readerIn(view, surface, uri)
    return surface.capabilities.has(scope.name) && !isResourceHidden(surface, scope.name, uri) ? scope.name : undefined
  }

  /** Whether a client may read a resource from a provider; true while the provider's lists are unknown. */
  canRead (view: View, client: Client, provider: string, uri: string): boolean {
    const surface = this.#surfaces.of(view, client)
    if (!surface.capabilities.has(provider)) return true
    return view.scope.kind === 'server'
      ? !isResourceHidden(surface, provider, uri)
      : this.#readerIn(view, surface, uri) === provider
  }

  /**
   * The provider that lists a resource or has a matching template. If there is none, on merged routes: the provider
   * that has linked to the resource, or whose tool uses it as MCP App, if the view selects all of its resources.
   */
  #readerIn (view: View, surface: Surface, uri: string): string | undefined {
    const provider = findResourceTarget(surface, uri)?.provider
    if (provider !== undefined || view.scope.kind === 'server') return provider
    const linked = this.#links.providerOf(uri, view.principal.key) ?? mcpAppProviderOf(surface, uri)
    if (linked === undefined || isResourceHidden(surface, linked, uri)) return undefined
    const showsAll = this.#surfaces.visible(view).some(({ server, member }) =>
      server.name === linked && (member.resources ?? 'all') === 'all')
    return showsAll ? linked : undefined
  }
}

/** Returns a member of a request's params that must be a string. @param what describes it @throws RpcError -32602 */
export function stringParam ({ params }: Exchange, name: string, what: string): string {
  const { [name]: value } = params
  if (typeof value === 'string') return value
  throw new RpcError(rpcCode.invalidParams, `Invalid params: "${name}" must be ${what}`)
}

/** The error for a resource that a view does not show. */
export function unknownResourceError (uri: string): RpcError {
  const message = `Resource not found: ${uri}`
  const text = JSON.stringify({ code: rpcCode.resourceNotFound, message, data: { uri } })
  return new RpcError(rpcCode.resourceNotFound, message, 'unknown-resource', text)
}

/** The error for a skill that a view does not show. */
export const unknownSkillError = (uri: string): RpcError =>
  new RpcError(rpcCode.invalidParams, `No skill is served at ${uri}`, 'unknown-resource')

/** The error for a folder in which a view shows nothing. @param uri with or without a trailing slash */
export const unknownFolderError = (uri: string): RpcError =>
  new RpcError(rpcCode.invalidParams, `There is no folder at ${uri.replace(/\/$/, '')}`, 'unknown-resource')

/** Thrown if a provider is not available now. The message is for clients. */
export class NotConnectedError extends RpcError {
  readonly provider: string
  /** The provider's name of the requested item, if the item's name in the view has a prefix. */
  readonly item: string | undefined

  /** @param problem why the provider is not available, unless its status or `unavailableReason` says so */
  constructor (name: string, provider: Provider | undefined, client: Client, item?: string, problem?: string) {
    const refusal = provider?.refusal?.(client)
    const connecting = provider?.status === 'connecting' ? 'it is still connecting' : undefined
    const reason = connecting ?? provider?.unavailableReason ?? problem ?? 'its configuration cannot be used'
    super(
      refusal?.code ?? rpcCode.unavailable,
      refusal?.message ?? `Server ${JSON.stringify(name)} is not connected: ${reason}`,
      refusal?.reason ?? 'not-connected',
      refusal?.toText()
    )
    this.provider = name
    this.item = item
  }
}
